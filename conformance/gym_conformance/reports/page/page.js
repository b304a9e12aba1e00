"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const say = (words) => { byId("said").textContent = words; };

  // A link to a check opens what it leads to.
  const follow = () => {
    let part = null;
    try { part = byId(decodeURIComponent(location.hash.slice(1))); } catch { return; }
    if (!part) return;
    for (let outer = part; outer; outer = outer.parentElement) {
      if (outer.localName === "details") outer.open = true;
      if (outer.hidden && form) { form.reset(); filter(); }
    }
    part.scrollIntoView();
    const summary = part.localName === "details" && part.querySelector("summary");
    if (summary) summary.focus({ preventScroll: true });
  };

  const form = byId("filter");
  const findings = form ? [...byId("list").children] : [];
  const texts = new Map();
  const textOf = (finding) => {
    if (!texts.has(finding)) texts.set(finding, finding.textContent.toLowerCase());
    return texts.get(finding);
  };
  const filter = () => {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const labels = new Set([...form.querySelectorAll("input:checked")].map((box) => box.value));
    let shown = 0;
    for (const finding of findings) {
      const fits = labels.has(finding.dataset.label) && words.every((word) => textOf(finding).includes(word));
      finding.hidden = !fits;
      shown += fits;
    }
    const all = findings.length.toLocaleString("en");
    const noun = form.dataset.noun;
    byId("count").textContent = shown === findings.length ? `${all} ${noun}` : `${shown.toLocaleString("en")} of ${all} ${noun}`;
    byId("nothing").hidden = shown > 0;
  };
  if (form) {
    form.hidden = false;
    let waiting = 0;
    form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 80); });
    form.addEventListener("submit", (event) => event.preventDefault());
    const all = byId("open");
    if (all) all.addEventListener("click", () => {
      const open = all.textContent === "Open all";
      for (const finding of findings) if (!finding.hidden) finding.open = open;
      all.textContent = open ? "Close all" : "Open all";
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.matches("input[type=search], textarea");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        byId("search").focus();
      }
    });
  }

  // A head of the servers' table sorts its lines, the gravest, highest or first on top; again, the other way round.
  const gravity = ["must", "untestable", "should", "caution", "note", "accepted", "framework", "pass", "none"];
  const valueOf = (row, column) => {
    const cell = row.children[column];
    const place = cell.querySelector("a[title]") ? gravity.indexOf(cell.className) : -1;
    const said = cell.textContent.trim();
    return place >= 0 ? place : cell.classList.contains("number") ? -Number(said || 0) : said.toLowerCase();
  };
  const compare = (one, other) => (typeof one === typeof other ? (one < other ? -1 : Number(one > other)) : typeof one === "number" ? -1 : 1);
  const sortBy = (head, column, heads) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = byId("list");
    const rows = [...body.children].map((row) => [valueOf(row, column), row]);
    rows.sort(([one], [other]) => (down ? compare(other, one) : compare(one, other)));
    body.append(...rows.map(([, row]) => row));
    say(`Sorted by ${head.textContent}`);
  };
  const heads = [...document.querySelectorAll(".fleet thead th")];
  for (const [column, head] of heads.entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(head, column, heads));
    head.append(button);
  }

  const copy = async (button) => {
    const code = button.closest(".reproduce").querySelector("code");
    let copied = true;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      copied = document.execCommand("copy");
    }
    button.textContent = copied ? "Copied" : "Selected: press Ctrl+C";
    say(button.textContent);
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  };
  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }

  // What is closed would not be on paper.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of closed) details.open = false; });
  addEventListener("hashchange", follow);
  follow();
})();
