//! Reads the imports of a crate's modules from their tokens.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The segments of a path. The path of a module starts at the root.
pub(super) type Path = Vec<String>;

/// The most re-exports that are followed for a path.
const MAX_REEXPORTS: usize = 8;

#[derive(Default)]
pub(super) struct Module {
    /// The module that has a file for this module's code: itself, unless it is inline.
    pub(super) file: Path,
    /// The paths in it, including the paths of its `use` items.
    pub(super) paths: BTreeSet<Path>,
    /// The paths that its `use` items import, by their names here.
    imported: BTreeMap<String, Path>,
}

pub(super) struct Crate<'r> {
    pub(super) modules: BTreeMap<Path, Module>,
    /// Returns the text of a file, by its path below the root's folder.
    read: &'r dyn Fn(&str) -> Option<String>,
}

impl<'r> Crate<'r> {
    /// Reads the file `root` and the files of its modules.
    pub(super) fn new(root: &str, read: &'r dyn Fn(&str) -> Option<String>) -> Self {
        let modules = BTreeMap::new();
        let mut krate = Self { modules, read };
        krate.file(&Path::new(), "", &[root.to_owned()]);
        krate
    }

    /// Reads the file of a module. `names` are its possible names.
    fn file(&mut self, path: &Path, below: &str, names: &[String]) {
        // If `#[path]` names the file, it is not found here, and the module is left out.
        if let Some(text) = names.iter().find_map(|name| (self.read)(name)) {
            self.module(path, path, below, text.parse().expect("tokens"));
        }
    }

    fn module(&mut self, file: &Path, path: &Path, below: &str, tokens: TokenStream) {
        let mut module = self.modules.remove(path).unwrap_or_default();
        module.file.clone_from(file);
        let tokens = Vec::from_iter(tokens);
        let mut rest = &tokens[..];
        while let [token, after @ ..] = rest {
            rest = match (token, after) {
                (TokenTree::Ident(word), [TokenTree::Ident(name), body, rest @ ..])
                    if word == "mod" =>
                {
                    let child = [&path[..], &[name.to_string()]].concat();
                    let folder = format!("{below}{name}/");
                    if let TokenTree::Group(group) = body {
                        self.module(file, &child, &folder, group.stream());
                    } else {
                        let names = ["", "/mod"].map(|end| format!("{below}{name}{end}.rs"));
                        self.file(&child, &folder, &names);
                    }
                    rest
                }
                _ => module.read(rest),
            };
        }
        self.modules.insert(path.clone(), module);
    }

    /// Returns the module that defines the target of a path in `module`; `None` for a target in
    /// another crate.
    pub(super) fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<Path> {
        let child = |of: &[String], name: &String| [of, std::slice::from_ref(name)].concat();
        let supers = path
            .iter()
            .take_while(|segment| *segment == "super")
            .count();
        let name = path.first()?;
        let is_here = || {
            self.modules.contains_key(&child(module, name))
                || self.modules[module].imported.contains_key(name)
        };
        let (found, mut rest) = match name.as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (module, &path[1..]),
            "super" => (
                &module[..module.len().checked_sub(supers)?],
                &path[supers..],
            ),
            _ if is_here() => (module, path),
            _ => return None,
        };
        let mut found = found.to_vec();
        while let [name, more @ ..] = rest {
            let below = child(&found, name);
            if !self.modules.contains_key(&below) {
                return match self.modules[&found].imported.get(name) {
                    Some(import) if depth < MAX_REEXPORTS => {
                        self.resolve(&found, &[import, more].concat(), depth + 1)
                    }
                    _ => Some(found),
                };
            }
            (found, rest) = (below, more);
        }
        Some(found)
    }
}

impl Module {
    /// Reads one token, or more tokens if they form a path, a `use` item or an item of tests.
    /// Returns the remaining tokens.
    fn read<'t>(&mut self, tokens: &'t [TokenTree]) -> &'t [TokenTree] {
        let [token, after @ ..] = tokens else {
            return tokens;
        };
        match (token, after) {
            (TokenTree::Group(group), _) => {
                let tokens = Vec::from_iter(group.stream());
                let mut rest = &tokens[..];
                while !rest.is_empty() {
                    rest = self.read(rest);
                }
                after
            }
            (TokenTree::Punct(_), [TokenTree::Group(attribute), item @ ..]) if is(token, '#') => {
                let text = attribute.stream().to_string().replace(' ', "");
                match text == "cfg(test)" || text.starts_with("cfg(all(test,") {
                    true => after_item(item),
                    false => after,
                }
            }
            // A lifetime.
            (TokenTree::Punct(_), _) if is(token, '\'') => path_of(after).1,
            // A path that does not start in this crate.
            (TokenTree::Punct(_), [colon, rest @ ..]) if is(token, ':') && is(colon, ':') => {
                path_of(rest).1
            }
            (TokenTree::Ident(word), [next, ..]) if word == "use" && !is(next, '<') => {
                let end = after.iter().position(|token| is(token, ';'));
                let (tree, rest) = after.split_at(end.unwrap_or(after.len()));
                self.import(&Path::new(), tree);
                rest
            }
            (TokenTree::Ident(_), _) => {
                let (path, rest) = path_of(tokens);
                if path.len() > 1 {
                    self.paths.insert(path);
                }
                rest
            }
            _ => after,
        }
    }

    /// Adds the paths of an import tree, below `prefix`.
    fn import(&mut self, prefix: &Path, tree: &[TokenTree]) {
        let (named, rest) = path_of(tree);
        let mut path = [&prefix[..], &named].concat();
        match rest {
            [.., TokenTree::Group(group)] => {
                let tokens = Vec::from_iter(group.stream());
                let trees = tokens.split(|token| is(token, ','));
                // Nothing follows the last comma.
                for tree in trees.filter(|tree| !tree.is_empty()) {
                    self.import(&path, tree);
                }
                return;
            }
            [.., star] if is(star, '*') => {}
            _ => {
                path.pop_if(|last| last == "self");
                let name = match rest {
                    [_, TokenTree::Ident(name)] => Some(name.to_string()),
                    _ => path.last().cloned(),
                };
                self.imported.extend(name.map(|name| (name, path.clone())));
            }
        }
        self.paths.insert(path);
    }
}

/// Returns the path at the start of tokens, and the remaining tokens.
fn path_of(mut tokens: &[TokenTree]) -> (Path, &[TokenTree]) {
    let mut path = Path::new();
    while let [TokenTree::Ident(segment), rest @ ..] = tokens {
        path.push(segment.to_string());
        tokens = match rest {
            [one, two, TokenTree::Ident(_), ..] if is(one, ':') && is(two, ':') => &rest[2..],
            _ => return (path, rest),
        };
    }
    (path, tokens)
}

/// Returns the tokens after an item, which ends with braces or a semicolon.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let end = tokens.iter().position(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is(token, ';'),
    });
    end.map_or(&[], |end| &tokens[end + 1..])
}

fn is(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == punct)
}
