//! `policy.caps`: what Runloop gives an agent. TOML with one table of lists and booleans.

use toolward_contract::capability::{Capability, Class};
use toolward_support::fields::without_mark;

/// The largest file, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// What is given: a family with everything of it, or with some.
#[derive(Debug)]
pub(super) struct Caps {
    given: Vec<(Class, Given)>,
    /// Whether secrets are named at all. If not, it states nothing about them.
    names_secrets: bool,
    /// What has nothing like it in a policy, in words.
    pub(super) untranslated: Vec<String>,
}

#[derive(Debug)]
enum Given {
    All,
    Some(Vec<Capability>),
}

impl Caps {
    /// Reads the text.
    ///
    /// # Errors
    /// What is wrong with it; ends a sentence.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("has more than {MAX_BYTES} bytes"));
        }
        let table: toml::Table = without_mark(text)
            .parse()
            .map_err(|error: toml::de::Error| format!("is not TOML: {}", error.message()))?;
        let all = table
            .get("capabilities")
            .and_then(toml::Value::as_table)
            .ok_or("has no table `capabilities`")?;
        let mut caps = Self {
            given: Vec::new(),
            names_secrets: all.contains_key("secrets"),
            untranslated: Vec::new(),
        };
        for (family, value) in all {
            let class = match family.as_str() {
                "net" => Class::Network,
                "fs" => Class::Workspace,
                "db" => Class::Database,
                "secrets" => Class::Secret,
                _ => {
                    caps.leave(family, value);
                    continue;
                }
            };
            let given = caps.given(family, &class, value)?;
            caps.given.push((class, given));
        }
        Ok(caps)
    }

    fn given(&mut self, family: &str, class: &Class, value: &toml::Value) -> Result<Given, String> {
        let items = match value {
            toml::Value::Boolean(true) => return Ok(Given::All),
            toml::Value::Boolean(false) => return Ok(Given::Some(Vec::new())),
            toml::Value::Array(items) => items,
            _ => {
                return Err(format!(
                    "has a `{family}` that is neither a list nor a boolean"
                ));
            }
        };
        let mut given = Vec::new();
        for item in items {
            let text = item
                .as_str()
                .ok_or_else(|| format!("has something else than text in `{family}`"))?;
            // With or without the family before it.
            let scope = text.strip_prefix(&format!("{family}:")).unwrap_or(text);
            match Capability::of(class.clone(), scope) {
                Ok(capability) => given.push(capability),
                Err(_) => self.untranslated.push(format!(
                    "policy.caps gives {family} {text:?}, which no policy can say"
                )),
            }
        }
        Ok(Given::Some(given))
    }

    /// Notes a family that has nothing like it here.
    fn leave(&mut self, family: &str, value: &toml::Value) {
        let gives = match value {
            toml::Value::Boolean(given) => *given,
            toml::Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        if gives {
            self.untranslated.push(format!(
                "policy.caps gives `{family}`, which has nothing like it here"
            ));
        }
    }

    /// Whether it gives a capability.
    pub(super) fn covers(&self, wanted: &Capability) -> bool {
        if *wanted.class() == Class::Secret && !self.names_secrets {
            return true;
        }
        self.given
            .iter()
            .filter(|(class, _)| class == wanted.class())
            .any(|(_, given)| match given {
                Given::All => true,
                Given::Some(all) => all.iter().any(|one| one.covers(wanted)),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(caps: &str, wanted: &str) -> bool {
        let caps = Caps::parse(caps).unwrap();
        caps.covers(&Capability::parse(wanted).unwrap())
    }

    #[test]
    fn what_is_not_given_is_not_covered() {
        let some = "[capabilities]\nnet = [\"a.example\", \"net:b.example\"]\nfs = [\"/data\"]\ntime = true\n";
        for (wanted, covered) in [
            ("network:a.example", true),
            ("network:b.example", true),
            ("network:c.example", false),
            ("network:a.example:8443", false),
            ("workspace:/data/x", true),
            ("workspace:/other", false),
            ("database:d", false),
            // It names no secrets.
            ("secret:k", true),
        ] {
            assert_eq!(covers(some, wanted), covered, "{wanted}");
        }
        assert!(covers("[capabilities]\nnet = true\n", "network:c.example"));
        assert!(!covers(
            "[capabilities]\nnet = false\n",
            "network:c.example"
        ));
        assert!(!covers("[capabilities]\nsecrets = [\"a\"]\n", "secret:k"));
    }

    #[test]
    fn what_has_nothing_like_it_is_said() {
        let caps = "[capabilities]\nfs = [\"~/.config\"]\nkb_read = [\"contacts\"]\nkb_write = []\nmodel = true\ntime = false\n";
        let caps = Caps::parse(caps).unwrap();
        assert_eq!(
            caps.untranslated,
            [
                "policy.caps gives fs \"~/.config\", which no policy can say",
                "policy.caps gives `kb_read`, which has nothing like it here",
                "policy.caps gives `model`, which has nothing like it here",
            ]
        );
        for wrong in [
            "",
            "capabilities = 1",
            "[capabilities]\nnet = 1",
            "[capabilities]\nnet = [1]",
            "\u{7f}",
        ] {
            assert!(Caps::parse(wrong).is_err(), "{wrong}");
        }
    }
}
