//! Why a join was refused, and where: as for XQuery, whose kinds of faults fit.

pub use crate::xquery::error::{XQueryError as XsclError, XQueryErrorKind as XsclErrorKind};

use crate::xpath::error::{XPathError, XPathErrorKind};

/// Result of reading something.
pub(super) type Outcome<T> = Result<T, XsclError>;

/// A fault of a piece of XPath that lies at byte `start` of `text`.
pub(super) fn in_piece(error: XPathError, text: &str, start: usize) -> XsclError {
    let kind = match error.kind {
        XPathErrorKind::Syntax => XsclErrorKind::Syntax,
        XPathErrorKind::UnboundPrefix => XsclErrorKind::UnboundPrefix,
        XPathErrorKind::UnknownFunction => XsclErrorKind::UnknownFunction,
        XPathErrorKind::WrongArguments => XsclErrorKind::WrongArguments,
        XPathErrorKind::Type => XsclErrorKind::Type,
        XPathErrorKind::Variable => XsclErrorKind::Variable,
        XPathErrorKind::NotXPath1 => XsclErrorKind::Unsupported,
        XPathErrorKind::Limit => XsclErrorKind::Limit,
    };
    let message = match error.kind {
        XPathErrorKind::Variable => {
            "a condition uses no variables: compare them in the equalities of an operator, {a = b, 1 h}".to_owned()
        }
        _ => error.message,
    };
    XsclError::new(kind, message, text, start + error.offset)
}
