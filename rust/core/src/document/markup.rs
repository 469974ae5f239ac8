//! Rules of comments and processing instructions, the same in content and in a DTD.

use super::chars::{is_ncname, is_space};

/// Checks the inside of a comment; the error says what is wrong and at which byte of the inside.
pub(super) fn check_comment(inside: &str) -> Result<(), (usize, &'static str)> {
    match memchr::memmem::find(inside.as_bytes(), b"--") {
        Some(at) => Err((at, "'--' found in a comment, which only '-->' may end")),
        None if inside.ends_with('-') => Err((inside.len() - 1, "a comment must not end with '--->'")),
        None => Ok(()),
    }
}

/// Splits the inside of a processing instruction into target and data; the error says what is wrong.
pub(super) fn split_instruction(inside: &str) -> Result<(&str, &str), String> {
    let end = inside.bytes().position(is_space).unwrap_or(inside.len());
    let (target, data) = inside.split_at(end);
    if target.eq_ignore_ascii_case("xml") {
        return Err(format!("'<?{target}' found where no XML declaration may be: it must be the first thing of all"));
    }
    if !is_ncname(target) {
        return Err(format!(
            "'{target}' found, the target of a processing instruction, a name without colon, expected"
        ));
    }
    let start = data.bytes().position(|b| !is_space(b)).unwrap_or(data.len());
    Ok((target, &data[start..]))
}
