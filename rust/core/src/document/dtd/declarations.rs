//! Element, attribute and notation declarations.

use super::super::error::DocumentError;
use super::cursor::Cursor;

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributeType {
    Character,
    Id,
    Tokenized,
}

/// The default of an attribute; a value still as written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Default<'a> {
    None,
    Value(&'a str),
}

/// What follows `<!ELEMENT`.
pub(super) fn element(cursor: &mut Cursor<'_>) -> Result<(), DocumentError> {
    cursor.space()?;
    cursor.qname()?;
    cursor.space()?;
    if !cursor.take("EMPTY") && !cursor.take("ANY") {
        cursor.expect("(")?;
        cursor.skip_space();
        if cursor.take("#PCDATA") { mixed(cursor)? } else { children(cursor)? }
    }
    cursor.end()
}

/// Mixed content (production 51), after `#PCDATA`.
fn mixed(cursor: &mut Cursor<'_>) -> Result<(), DocumentError> {
    let mut names = false;
    loop {
        cursor.skip_space();
        if cursor.take(")") {
            return if cursor.take("*") || !names { Ok(()) } else { Err(cursor.expected("'*'")) };
        }
        cursor.expect("|")?;
        cursor.skip_space();
        cursor.qname()?;
        names = true;
    }
}

/// A content model (productions 47 to 50), after its first parenthesis; nesting costs memory, not stack.
fn children(cursor: &mut Cursor<'_>) -> Result<(), DocumentError> {
    // The separator of each open group, 0 while it is not yet known.
    let mut groups = vec![0u8];
    loop {
        cursor.skip_space();
        if cursor.take("(") {
            groups.push(0);
            continue;
        }
        cursor.qname()?;
        repetition(cursor);
        loop {
            cursor.skip_space();
            let Some(group) = groups.last_mut() else { return Ok(()) };
            match cursor.peek() {
                Some(b')') => {
                    groups.pop();
                    cursor.at += 1;
                    repetition(cursor);
                    if groups.is_empty() {
                        return Ok(());
                    }
                }
                Some(separator @ (b'|' | b',')) if *group == 0 || *group == separator => {
                    *group = separator;
                    cursor.at += 1;
                    break;
                }
                _ => return Err(cursor.expected("')' or the separator of this group")),
            }
        }
    }
}

fn repetition(cursor: &mut Cursor<'_>) {
    if matches!(cursor.peek(), Some(b'?' | b'*' | b'+')) {
        cursor.at += 1;
    }
}

/// What follows `<!ATTLIST`; `found` gets element, attribute, type and default.
pub(super) fn attributes<'a>(
    cursor: &mut Cursor<'a>,
    mut found: impl FnMut(&Cursor<'a>, &'a str, &'a str, AttributeType, Default<'a>) -> Result<(), DocumentError>,
) -> Result<(), DocumentError> {
    cursor.space()?;
    let element = cursor.qname()?;
    loop {
        let spaced = cursor.skip_space();
        if cursor.take(">") {
            return Ok(());
        }
        if !spaced {
            return Err(cursor.expected("white space"));
        }
        let name = cursor.qname()?;
        cursor.space()?;
        let kind = attribute_type(cursor)?;
        cursor.space()?;
        let default = if cursor.take("#REQUIRED") || cursor.take("#IMPLIED") {
            Default::None
        } else {
            if cursor.take("#FIXED") {
                cursor.space()?;
            }
            Default::Value(cursor.quoted("a quoted default value, #REQUIRED, #IMPLIED or #FIXED")?)
        };
        found(cursor, element, name, kind, default)?;
    }
}

fn attribute_type(cursor: &mut Cursor<'_>) -> Result<AttributeType, DocumentError> {
    if cursor.peek() == Some(b'(') {
        enumeration(cursor, |cursor| cursor.nmtoken().map(|_| ()))?;
        return Ok(AttributeType::Tokenized);
    }
    let start = cursor.at;
    let kind = match cursor.nmtoken()? {
        "CDATA" => AttributeType::Character,
        "ID" => AttributeType::Id,
        "IDREF" | "IDREFS" | "ENTITY" | "ENTITIES" | "NMTOKEN" | "NMTOKENS" => AttributeType::Tokenized,
        "NOTATION" => {
            cursor.space()?;
            enumeration(cursor, |cursor| cursor.ncname().map(|_| ()))?;
            AttributeType::Tokenized
        }
        other => {
            let message = format!("'{other}' found in the DTD, the type of an attribute expected");
            cursor.at = start;
            return Err(cursor.error(message));
        }
    };
    Ok(kind)
}

fn enumeration<'a>(
    cursor: &mut Cursor<'a>,
    mut token: impl FnMut(&mut Cursor<'a>) -> Result<(), DocumentError>,
) -> Result<(), DocumentError> {
    cursor.expect("(")?;
    loop {
        cursor.skip_space();
        token(cursor)?;
        cursor.skip_space();
        if cursor.take(")") {
            return Ok(());
        }
        cursor.expect("|")?;
    }
}

/// What follows `<!NOTATION`.
pub(super) fn notation(cursor: &mut Cursor<'_>) -> Result<(), DocumentError> {
    cursor.space()?;
    cursor.ncname()?;
    cursor.space()?;
    if !cursor.external_id(true)? {
        return Err(cursor.expected("SYSTEM or PUBLIC"));
    }
    cursor.end()
}
