// What a person with a screen reader or weak eyes would miss on this page, as
// a list of sentences. Contrast by WCAG 2.2 §1.4.3; headings, names, landmarks.
const faults = [];
const shown = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
const all = (css) => [...document.querySelectorAll(css)];
if (!document.documentElement.lang) faults.push("no language");
if (!document.title) faults.push("no title");
if (all("main").length !== 1) faults.push("not one main landmark");
if (all("h1").length !== 1) faults.push("not one h1");
let level = 0;
for (const h of all("h1, h2, h3, h4")) {
  const now = Number(h.tagName[1]);
  if (now > level + 1) faults.push(`heading level ${now} follows ${level}: ${h.textContent}`);
  level = now;
}
for (const input of all("input:not([type=hidden]), select, textarea")) {
  if (!input.labels || input.labels.length === 0) faults.push(`no label: ${input.outerHTML}`);
}
for (const e of all("a, button, summary")) {
  if (!e.textContent.trim() && !e.getAttribute("aria-label")) faults.push(`no name: ${e.outerHTML}`);
}
for (const e of all("iframe")) if (!e.title) faults.push("a frame without a title");
for (const e of all("section, aside")) {
  const by = e.getAttribute("aria-labelledby");
  if (by ? !document.getElementById(by) : !e.getAttribute("aria-label")) faults.push(`no name: ${e.className}`);
}
const ids = all("[id]").map((e) => e.id);
for (const id of ids.filter((id, n) => ids.indexOf(id) !== n)) faults.push(`an id twice: ${id}`);
// Targets under a thumb (WCAG 2.2 §2.5.8).
for (const e of all("button, summary, .top a, a.button, a.hold, input:not([type=hidden])").filter(shown)) {
  const box = e.getBoundingClientRect();
  if (box.height < 24 || box.width < 24) faults.push(`a small target: ${e.outerHTML.slice(0, 80)}`);
}
if (document.documentElement.scrollWidth > window.innerWidth + 1) faults.push("wider than the window");
const channels = (colour) => {
  const n = colour.match(/[\d.]+/g).map(Number);
  return { rgb: n.slice(0, 3), alpha: n.length > 3 ? n[3] : 1 };
};
const light = (rgb) => {
  const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const { rgb, alpha } = channels(getComputedStyle(e).backgroundColor);
    if (alpha === 1) return rgb;
  }
  return [255, 255, 255];
};
for (const e of all("body *").filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))) {
  if (!shown(e) || e.closest("button:disabled, noscript, .skip")) continue;
  const [a, b] = [light(channels(getComputedStyle(e).color).rgb), light(behind(e))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`);
}
return faults;
