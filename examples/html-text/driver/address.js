// Addresses of links: completed by that of the page (RFC 3986, section 5.2). The engine has
// no `URL`.

const PARTS = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/s;

// What a reader can follow. `javascript:` and `data:` are code and content, not places.
const FOLLOWED = new Set(["http", "https", "mailto", "tel", "ftp"]);

const ESCAPES = { " ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E" };

/** The address that a reference means, or undefined where it is none to follow. Without
 *  a base a relative one stays as it is. */
export function resolve(reference, base) {
  // As browsers do: no control characters at the ends, no line ends within.
  const written = reference.replace(/^[\0- ]+|[\0- ]+$/g, "").replace(/[\t\n\r]/g, "");
  if (written === "") return undefined;
  const [, scheme, authority, path, query = "", fragment = ""] = PARTS.exec(written);
  if (scheme !== undefined && !FOLLOWED.has(scheme.toLowerCase())) return undefined;
  if (scheme !== undefined || base === undefined) return escaped(written);
  const from = PARTS.exec(base);
  const start = `${from[1]}:`;
  if (authority !== undefined) return escaped(`${start}//${authority}${path}${query}${fragment}`);
  const place = `${start}//${from[2] ?? ""}`;
  if (path === "") return escaped(place + from[3] + (query || (from[4] ?? "")) + fragment);
  const folder = from[3].slice(0, from[3].lastIndexOf("/") + 1) || "/";
  const merged = path.startsWith("/") ? path : folder + path;
  return escaped(place + withoutDots(merged) + query + fragment);
}

function withoutDots(path) {
  const kept = [];
  const segments = path.split("/");
  segments.forEach((segment, index) => {
    const last = index === segments.length - 1;
    if (segment === "..") {
      if (kept.length > 1) kept.pop();
    } else if (segment !== ".") {
      kept.push(segment);
      return;
    }
    if (last) kept.push("");
  });
  return kept.join("/");
}

const escaped = (address) => address.replace(/[ ()<>]/g, (character) => ESCAPES[character]);
