// Character references: numbers, and the names of HTML 4 with a few more.

// In the order of their characters, from U+00A0 on. They count without `;`, too.
const LATIN =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn " +
  "sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave " +
  "Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml " +
  "ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN " +
  "szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute " +
  "icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml " +
  "yacute thorn yuml";

// From U+0391 on; `-` stands for a place without a name.
const GREEK =
  "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma " +
  "Tau Upsilon Phi Chi Psi Omega - - - - - - - alpha beta gamma delta epsilon zeta eta theta iota " +
  "kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi omega";

const OTHERS =
  "apos ' OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ fnof ƒ circ ˆ tilde ˜ ensp \u2002 emsp \u2003 " +
  "thinsp \u2009 zwnj \u200c zwj \u200d lrm \u200e rlm \u200f ndash – mdash — lsquo ‘ rsquo ’ sbquo ‚ " +
  "ldquo “ rdquo ” bdquo „ dagger † Dagger ‡ bull • hellip … permil ‰ prime ′ Prime ″ lsaquo ‹ " +
  "rsaquo › oline ‾ frasl ⁄ euro € image ℑ weierp ℘ real ℜ trade ™ alefsym ℵ larr ← uarr ↑ rarr → " +
  "darr ↓ harr ↔ crarr ↵ lArr ⇐ uArr ⇑ rArr ⇒ dArr ⇓ hArr ⇔ forall ∀ part ∂ exist ∃ empty ∅ " +
  "nabla ∇ isin ∈ notin ∉ ni ∋ prod ∏ sum ∑ minus − lowast ∗ radic √ prop ∝ infin ∞ ang ∠ and ∧ " +
  "or ∨ cap ∩ cup ∪ int ∫ there4 ∴ sim ∼ cong ≅ asymp ≈ ne ≠ equiv ≡ le ≤ ge ≥ sub ⊂ sup ⊃ nsub ⊄ " +
  "sube ⊆ supe ⊇ oplus ⊕ otimes ⊗ perp ⊥ sdot ⋅ lceil ⌈ rceil ⌉ lfloor ⌊ rfloor ⌋ lang ⟨ rang ⟩ " +
  "loz ◊ spades ♠ clubs ♣ hearts ♥ diams ♦ star ☆ check ✓ cross ✗ phone ☎ dollar $ percnt % num # " +
  "lpar ( rpar ) lsqb [ rsqb ] lbrack [ rbrack ] lcub { rcub } lbrace { rbrace } ast * plus + " +
  "comma , period . colon : semi ; excl ! quest ? commat @ sol / bsol \\ lowbar _ grave ` vert | " +
  "verbar | equals = hyphen ‐ horbar ― numsp \u2007 puncsp \u2008 hairsp \u200a Tab \t NewLine \n " +
  "inodot ı Abreve Ă abreve ă Ccaron Č ccaron č Dcaron Ď dcaron ď Ecaron Ě ecaron ě Lstrok Ł " +
  "lstrok ł Nacute Ń nacute ń Ncaron Ň ncaron ň Rcaron Ř rcaron ř Sacute Ś sacute ś Tcaron Ť " +
  "tcaron ť Zacute Ź zacute ź Zcaron Ž zcaron ž Zdot Ż zdot ż Aogon Ą aogon ą Eogon Ę eogon ę " +
  "Odblac Ő odblac ő Udblac Ű udblac ű Uring Ů uring ů";

const NAMES = new Map();
const WITHOUT_SEMICOLON = new Set();

function name(entity, character, old = false) {
  NAMES.set(entity, character);
  if (old) WITHOUT_SEMICOLON.add(entity);
}

for (const [names, from] of [
  [LATIN, 0xa0],
  [GREEK, 0x391],
]) {
  names.split(" ").forEach((entity, index) => {
    if (entity !== "-") name(entity, String.fromCodePoint(from + index), from === 0xa0);
  });
}
// A space or a line end is a character here, so the list is not split at those.
for (const [, entity, character] of OTHERS.matchAll(/([A-Za-z]\w*) ([^ ]+)(?: |$)/gu)) {
  name(entity, character);
}
for (const [entity, character] of [
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
]) {
  name(entity, character, true);
  name(entity.toUpperCase(), character, true);
}

// What browsers take 128 to 159 for: windows-1252.
const WINDOWS =
  "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";

// A number, or a name. Names are at most this long, so that a long word costs little.
const REFERENCE = /&(?:#[xX]([0-9a-fA-F]+);?|#([0-9]+);?|([A-Za-z][A-Za-z0-9]{0,31})(;?))/y;

/** The text with its references replaced. In an attribute, `&copy=1` stays as it is. */
export function decode(text, inAttribute = false) {
  const parts = [];
  let from = 0;
  // One at a time: `replace` would keep all that it found.
  for (let at = text.indexOf("&"); at !== -1; at = text.indexOf("&", at + 1)) {
    REFERENCE.lastIndex = at;
    const found = REFERENCE.exec(text);
    if (!found) continue;
    const character = meaning(found, text[at + found[0].length], inAttribute);
    if (character === undefined) continue;
    parts.push(text.slice(from, at), character);
    from = at + found[0].length;
    at = from - 1;
  }
  return parts.length === 0 ? text : parts.join("") + text.slice(from);
}

/** What a reference stands for, or undefined where it is none. */
function meaning([whole, hexadecimal, decimal, word, semicolon], next, inAttribute) {
  if (hexadecimal) return numbered(parseInt(hexadecimal, 16));
  if (decimal) return numbered(parseInt(decimal, 10));
  if (semicolon && NAMES.has(word)) return NAMES.get(word);
  if (inAttribute && (semicolon || next === "=")) return undefined;
  // Without a semicolon, the longest old name that the word begins with.
  for (let length = Math.min(word.length, 6); length >= 2; length--) {
    const known = word.slice(0, length);
    if (WITHOUT_SEMICOLON.has(known)) {
      if (inAttribute && length < word.length) return undefined;
      return NAMES.get(known) + whole.slice(length + 1);
    }
  }
  return undefined;
}

function numbered(code) {
  if (code >= 0x80 && code <= 0x9f) return WINDOWS[code - 0x80];
  const wrong = code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff);
  return wrong ? "\ufffd" : String.fromCodePoint(code);
}
