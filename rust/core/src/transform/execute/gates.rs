//! Gates passed or found closed.

use super::Execution;
use crate::transform::evaluate::Outcome;
use crate::transform::gates::{NONE, SETTLED};
use crate::transform::plan::ConditionId;
use crate::transform::population::{PlanId, Strategy};

/// Bindings that one word has bits for.
pub(super) const WORD: usize = 64;

/// What the gate of a plan says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// The plan gives nothing.
    Closed,
    /// The bindings of its loop that count, one bit each.
    Open(u64),
    /// The plan itself has to be looked at.
    Unknown,
}

impl Execution<'_> {
    /// Whether the document has anything for a plan, as far as its gate can tell.
    #[inline]
    pub(super) fn passage(&mut self, plan: PlanId) -> Outcome<Passage> {
        let gate = self.population.gate(plan);
        if gate.stream == NONE || self.strategy != Strategy::Shared || self.worker.is_unsure {
            return Ok(Passage::Unknown);
        }
        let mut bits = u64::MAX;
        for condition in gate.conditions {
            if condition == NONE {
                break;
            }
            let id = condition & !SETTLED;
            let (stamp, word) = self.worker.words[id as usize];
            if stamp == self.worker.work {
                bits &= word;
            } else if condition & SETTLED != 0 {
                return Ok(Passage::Closed);
            } else {
                match self.word(id)? {
                    Some(word) => bits &= word,
                    None => return Ok(Passage::Unknown),
                }
            }
            if bits == 0 {
                return Ok(Passage::Closed);
            }
        }
        self.compute(gate.stream)?;
        let count = self.count(gate.stream);
        if count > WORD {
            return Ok(Passage::Unknown);
        }
        if count < WORD {
            bits &= (1 << count) - 1;
        }
        Ok(match bits {
            0 => Passage::Closed,
            _ if gate.is_exact => Passage::Open(bits),
            _ => Passage::Unknown,
        })
    }

    /// A condition's verdict as one word, decided now; none if it takes more than that.
    fn word(&mut self, id: ConditionId) -> Outcome<Option<u64>> {
        let condition = self.operators.condition(id);
        self.compute(condition.base)?;
        if self.count(condition.base) > WORD {
            return Ok(None);
        }
        if self.verdict(id).stamp != self.worker.work {
            self.decide(id, condition.base, &condition.kind)?;
        }
        let verdict = self.verdict(id);
        if verdict.unsure.is_some() {
            return Ok(None);
        }
        let word = verdict.holds.first_word();
        self.worker.words[id as usize] = (self.worker.work, word);
        Ok(Some(word))
    }
}
