//! A little of CQL_TEXT: comparisons, LIKE, BETWEEN, AND, OR, NOT and parentheses.

use super::{Compare, Condition};

/// Parentheses and NOT may nest so deep.
const DEPTH_MAX: usize = 32;

/// Reads one expression; says in words what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Condition, String> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: &tokens, at: 0 };
    let condition = reader.any(0)?;
    match reader.peek() {
        None => Ok(condition),
        Some(token) => Err(format!("{token:?} is left over")),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(&'static str),
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    const SIGNS: [&str; 8] = ["<=", ">=", "<>", "<", ">", "=", "(", ")"];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else if let Some(quoted) = rest.strip_prefix('\'') {
            let end = quoted.find('\'').ok_or("a quote is not closed")?;
            tokens.push(Token::Text(quoted[..end].to_owned()));
            rest = &quoted[end + 1..];
        } else {
            let end = rest.find(|character: char| character.is_whitespace() || "<>=()'".contains(character)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Result<&'a Token, String> {
        let token = self.tokens.get(self.at).ok_or("the expression ends early")?;
        self.at += 1;
        Ok(token)
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(held)) if held.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    fn any(&mut self, depth: usize) -> Result<Condition, String> {
        let mut parts = vec![self.all(depth)?];
        while self.takes("OR") {
            parts.push(self.all(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::Any(parts) })
    }

    fn all(&mut self, depth: usize) -> Result<Condition, String> {
        let mut parts = vec![self.one(depth)?];
        while self.takes("AND") {
            parts.push(self.one(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::All(parts) })
    }

    fn one(&mut self, depth: usize) -> Result<Condition, String> {
        if depth > DEPTH_MAX {
            return Err("nested too deep".to_owned());
        }
        if self.takes("NOT") {
            return Ok(Condition::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.peek() == Some(&Token::Sign("(")) {
            self.at += 1;
            let inner = self.any(depth + 1)?;
            return match self.next()? {
                Token::Sign(")") => Ok(inner),
                other => Err(format!("{other:?} in place of a closing parenthesis")),
            };
        }
        self.term()
    }

    fn term(&mut self) -> Result<Condition, String> {
        let Token::Word(property) = self.next()? else { return Err("a property name is missing".to_owned()) };
        let term = |compare, literal| Condition::Term { property: property.clone(), compare, literal };
        if self.takes("BETWEEN") {
            let lower = term(Compare::GreaterOrEqual, self.literal()?);
            if !self.takes("AND") {
                return Err("BETWEEN without AND".to_owned());
            }
            return Ok(Condition::All(vec![lower, term(Compare::LessOrEqual, self.literal()?)]));
        }
        if self.takes("LIKE") {
            return Ok(term(Compare::Like, self.literal()?));
        }
        let compare = match self.next()? {
            Token::Sign("<=") => Compare::LessOrEqual,
            Token::Sign(">=") => Compare::GreaterOrEqual,
            Token::Sign("<>") => Compare::NotEqual,
            Token::Sign("<") => Compare::Less,
            Token::Sign(">") => Compare::Greater,
            Token::Sign("=") => Compare::Equal,
            other => return Err(format!("{other:?} is no comparison")),
        };
        Ok(term(compare, self.literal()?))
    }

    fn literal(&mut self) -> Result<String, String> {
        match self.next()? {
            Token::Text(text) | Token::Word(text) => Ok(text.clone()),
            other => Err(format!("{other:?} in place of a literal")),
        }
    }
}
