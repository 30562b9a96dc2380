//! What to write instead of what the YAML parser refuses, for the mistakes that people make in front matter.

use granit_parser::ErrorKind;

/// The next step after an error of this kind, if it is known.
pub(super) fn of(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::MappingValueNotAllowed => {
            "a text with `: ` in it stands between quotation marks: `description: \"Note: read this\"`"
        }
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => "indent with spaces: YAML takes no tabs there",
        ErrorKind::UnexpectedCharacter { .. } => {
            "put a text that starts with a special character, such as @, `, % or &, between quotation marks"
        }
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::DocumentIndicatorInQuotedScalar => {
            "close the quotation mark that is open here"
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar => {
            "write an apostrophe in a text between single quotation marks twice: \'it\'\'s\'"
        }
        ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            "write a quotation mark in a text between double quotation marks as \\\""
        }
        ErrorKind::UnknownQuotedScalarEscape | ErrorKind::InvalidQuotedScalarHexEscape => {
            "write a backslash between double quotation marks twice, or use single quotation marks"
        }
        ErrorKind::CommentInterceptedScalar => {
            "a ` #` starts a comment: put a text with it between quotation marks"
        }
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            "write `key: value`, with a colon and a space after the key"
        }
        ErrorKind::InvalidIndentation
        | ErrorKind::InvalidBlockScalarIndent
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry => {
            "indent the keys of one mapping, and the items of one list, by the same number of spaces; put a text that \
             starts with a bracket between quotation marks"
        }
        ErrorKind::InvalidColonPlacement
        | ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence => {
            "close the bracket, and put a text that starts with one between quotation marks"
        }
        ErrorKind::BlockSequenceEntryNotAllowed => "start a list on the line after its key",
        _ => return None,
    })
}
