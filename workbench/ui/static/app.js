// The one script of the pages: buttons of cards, keys, and the way back. It listens on the document once and holds no word
// of any document.
(() => {
  if (window.__workbenchPages) return;
  window.__workbenchPages = true;

  // Events wait here, numbered, until the other side has done them (`events.py`); its component sends them, also those that
  // were there before it.
  const waiting = (window.__workbenchEvents = window.__workbenchEvents || []);
  let last = 0;
  const send = (event) => {
    last = Math.max(last + 1, Date.now());
    waiting.push({...event, number: last});
    if (window.__workbenchSend) window.__workbenchSend();
  };
  const cardOf = (element) => element && element.closest && element.closest(".wb-card");
  const chunkOf = (card) => card.dataset.chunk;
  const cards = (column) => [...column.querySelectorAll(".wb-card")];
  const columns = () => [...document.querySelectorAll(".wb-column")].filter((c) => c.querySelector(".wb-card"));
  let current = null;   // {column, chunk, place}: the card that keys act on; found again after the answers are drawn again
  let grading = false;

  async function copy(button, text) {
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch (error) {
      button.textContent = "Select it";
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  }

  function open(link) {
    if (!/^\s*(javascript|data|vbscript|blob):/i.test(link)) window.location.href = link;
  }

  function grade(card, value) {
    // Every card of this passage shows it at once; the columns are drawn again with their figures, and the focus goes back.
    const held = document.activeElement.closest(".wb-column");
    for (const other of document.querySelectorAll(".wb-card")) {
      if (chunkOf(other) !== chunkOf(card)) continue;
      for (const button of other.querySelectorAll(".wb-grades button"))
        button.setAttribute("aria-pressed", String(button.dataset.v === String(value)));
    }
    send({do: "grade", chunk: chunkOf(card), value});
    const back = () => { if (document.activeElement === document.body) focused()?.focus({preventScroll: true}); };
    const drawn = () => waiting.length ? setTimeout(drawn, 50) : still(true).then(back);
    if (held) drawn();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("[data-wb-copy],[data-wb-link],[data-wb-open],[data-wb-do],[data-wb-keys]");
    const line = cardOf(event.target);
    if (line && line.closest(".wb-compact") && !event.target.closest("a,button") && getSelection().isCollapsed) toggle(line);
    if (!button) return;
    const card = cardOf(button);
    if (card) remember(card);
    if (button.dataset.wbCopy !== undefined) copy(button, button.dataset.wbCopy);
    else if (button.dataset.wbLink) copy(button, window.location.href);
    else if (button.dataset.wbOpen) open(button.dataset.wbOpen);
    else if (button.dataset.wbKeys) keys();
    else if (card && button.dataset.wbDo === "grade") grade(card, Number(button.dataset.v));
    else if (card) send({do: button.dataset.wbDo, chunk: chunkOf(card)});
  });

  // Links to pages of the app stay in this tab and session: Streamlit goes where the history moves to. What the address says
  // of the search, and the link does not, comes along; a link to the Search page says all of a search itself.
  const {pages, params, kept} = window.__workbench;
  function withState(link) {
    const named = (link.dataset.wbHref = link.dataset.wbHref || link.getAttribute("href"));
    const to = new URL(named, location.href);
    const page = to.pathname.split("/").pop();
    if (to.origin !== location.origin || to.pathname.includes("/s/") || !pages.includes(page)) return null;
    const now = new URLSearchParams(location.search);
    if (link.matches(".wb-why") && to.searchParams.has("plan")) {  // of a column with a plan of its own
      to.searchParams.delete("plan");
      now.set("moves", columns().indexOf(link.closest(".wb-column")) + 1);
    } else if (link.matches(".wb-why")) now.delete("moves");
    for (const name of page ? params : kept)
      if (now.has(name) && !to.searchParams.has(name)) to.searchParams.set(name, now.get(name));
    link.href = to.href;
    return to;
  }
  const linkOf = (event) => event.target.closest && event.target.closest('a[href]:not([download]):not([href^="#"])');
  for (const kind of ["pointerdown", "focusin"])
    document.addEventListener(kind, (event) => { if (linkOf(event)) withState(linkOf(event)); }, true);
  document.addEventListener("click", (event) => {
    const link = linkOf(event);
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const to = withState(link);
    if (!to) return;
    event.preventDefault();
    if (to.href === location.href) return;
    places.set(location.href, main().scrollTop);
    history.pushState({}, "", to.href);
    window.dispatchEvent(new PopStateEvent("popstate"));
    main().scrollTop = 0;
  });

  // Back to where a link was followed: to the same height, when the page has been drawn.
  const main = () => document.querySelector('[data-testid="stMain"]') || document.body, places = new Map();
  window.addEventListener("popstate", (event) => {
    const height = event.isTrusted && places.get(location.href), until = Date.now() + 10_000;
    let ran = false;
    const again = () => {
      const state = document.querySelector('[data-testid="stApp"]').dataset.testScriptState;
      ran = ran || state !== "notRunning";
      if (ran && state === "notRunning") main().scrollTop = height;
      else if (Date.now() < until) requestAnimationFrame(again);
    };
    if (height) requestAnimationFrame(again);
  });

  function remember(card) {
    const column = card.closest(".wb-column");
    current = {column: columns().indexOf(column), chunk: chunkOf(card), place: cards(column).indexOf(card)};
  }

  function focused() {
    const card = cardOf(document.activeElement);
    if (card) return card;
    if (!current) return null;
    const column = columns()[current.column];
    if (!column) return null;
    const all = cards(column);
    return all.find((c) => chunkOf(c) === current.chunk) || all[Math.min(current.place, all.length - 1)] || null;
  }

  // Rules that follow the pointer and the opened lines: rules, and not classes of cards, because cards are drawn again.
  const rules = document.head.appendChild(document.createElement("style"));
  const opened = new Set();
  let pointed = "";
  const named = (chunk) => `[data-chunk="${CSS.escape(chunk)}"]`;
  function rule() {
    const closed = opened.size ? `:not(${[...opened].map(named).join()})` : "";
    rules.textContent = `.wb-compact .wb-card${closed}{display:flex;gap:.5rem;align-items:center;
      & >:not(.wb-head,.wb-bar){display:none} & .wb-head{flex:1;min-width:0} & .wb-bar{flex:none;width:3rem;margin:0}
      & .wb-title{display:block;white-space:nowrap;text-overflow:ellipsis} & .wb-spot{display:block}}
      ${pointed && `.wb-card${named(pointed)}{outline:2px solid var(--wb-sky);outline-offset:-1px}`}`;
  }
  rule();
  function toggle(card) {
    if (!opened.delete(chunkOf(card))) opened.add(chunkOf(card));
    rule();
  }
  document.addEventListener("pointerover", (event) => {
    const card = cardOf(event.target), chunk = card && card.closest(".wb-column") ? chunkOf(card) : "";
    if (chunk !== pointed) { pointed = chunk; rule(); }
  });

  function go(card) {
    if (!card) return;
    remember(card);
    card.focus({preventScroll: true});
    card.scrollIntoView({block: "nearest"});
  }

  function move(down, right) {
    const all = columns();
    if (!all.length) return;
    const card = focused();
    if (!card) { go(cards(all[0])[0]); return; }
    const column = card.closest(".wb-column");
    const place = cards(column).indexOf(card);
    if (down) { go(cards(column)[place + down]); return; }
    const next = all[all.indexOf(column) + right];
    if (next) go(cards(next)[Math.min(place, cards(next).length - 1)]);
  }

  function press(card, selector) {
    const element = card && card.querySelector(selector);
    if (element) element.click();
  }

  function keys() {
    const held = document.querySelector("dialog.wb-keys");
    if (held) { held.close(); held.remove(); return; }
    const box = document.createElement("dialog");
    box.className = "wb-keys";
    const rows = [
      ["/", "to the query"], ["j k", "next and previous result"], ["h l", "column to the left and right"],
      ["g, then 0 to 3", "grade the result"], ["o", "open the document"], ["w", "why it has this rank"],
      ["m", "more like this"], ["n", "write a note"], ["c", "copy the citation"], ["e", "open in the editor"],
      ["u", "undo the last change"], ["Enter", "open or close a result that is one line"], ["?", "these keys"],
    ];
    const table = document.createElement("table");
    for (const [key, what] of rows) {
      const row = table.insertRow();
      row.insertCell().appendChild(document.createElement("kbd")).textContent = key;
      row.insertCell().textContent = what;
    }
    box.setAttribute("aria-label", "Keys");
    box.appendChild(table);
    box.addEventListener("click", () => { box.close(); box.remove(); });
    box.addEventListener("close", () => box.remove());
    document.body.appendChild(box);
    box.showModal();
  }

  // Keys of buttons wait here and are done one after the other, each when the page shows what the one before made of it: a key
  // that comes while the page runs is neither lost nor taken for the passage before.
  const pressed = [], buttons = {u: "undo", n: "judge-skip", b: "judge-back", x: "judge-rest"};
  const passage = () => document.querySelector(".wb-judge");
  let pressing = false;
  const still = (ran) => new Promise((done) => {
    const since = performance.now(), look = () => {
      const idle = document.querySelector('[data-testid="stApp"]').dataset.testScriptState === "notRunning";
      ran = ran || !idle || performance.now() - since > 400;
      ran && idle ? requestAnimationFrame(done) : requestAnimationFrame(look);
    };
    look();
  });
  async function pressButtons() {
    if (pressing) return;
    pressing = true;
    while (pressed.length) {
      await still(true);
      const key = pressed.shift(), name = buttons[key] || `judge-grade-${key}`;
      const button = document.querySelector(`.st-key-wb-w-${name} button:not(:disabled)`);
      if (button) button.click();
      await still(false);
    }
    pressing = false;
  }
  // How far work is that the page shows is asked beside the app. At its end the page is drawn again, when no run is on, whose new
  // values the browser would not have yet.
  async function follow() {
    let over = false;
    for (const line of document.querySelectorAll("[data-wb-progress]")) {
      const now = await fetch(`/p/${line.dataset.wbProgress}`).then((answer) => answer.json()).catch(() => null);
      if (!now) continue;
      line.querySelector("progress").value = now.share;
      if (now.words) line.querySelector("span").textContent = now.words;
      over = over || !now.running;
    }
    if (over && !document.querySelector('[data-testid="stDialog"]')) {  // which a run would close
      await still(true);
      window.__workbenchAgain?.();
      await still(false);
    }
    setTimeout(follow, 400);
  }
  follow();

  window.addEventListener("keydown", (event) => {
    const at = event.target, key = event.key.toLowerCase(), judging = passage();
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('[role="dialog"]')) return;
    if (at.isContentEditable || at.matches?.("textarea,select,input:not([type=range],[type=radio],[type=checkbox])")) return;
    if (key !== "u" && !(judging && /^[0-3nbx]$/.test(key))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.repeat && judging) return;  // a key that is held is one grade
    pressed.push(key);
    pressButtons();
  }, true);

  const onCard = {
    o: (card) => press(card, ".wb-title"), w: (card) => press(card, "a.wb-act"), c: (card) => press(card, ".wb-copy"),
    m: (card) => press(card, '[data-wb-do="more"]'), n: (card) => press(card, '[data-wb-do="note"]'),
    e: (card) => press(card, "[data-wb-open]"), Enter: (card) => card.closest(".wb-compact") && toggle(card),
  };

  function stopGrading() {
    grading = false;
    for (const card of document.querySelectorAll(".wb-grading")) card.classList.remove("wb-grading");
  }

  // A page is entered in two steps, first its bare address and then the search that comes along. The two are one entry of the
  // history: Back would stop at the bare one, and take an empty search from it.
  const push = history.pushState.bind(history);
  let bare = "";  // the path of a bare address on which nobody has done anything yet
  history.pushState = (state, title, url) => {
    const to = new URL(url || "", location.href);
    const same = bare && bare === to.pathname && location.pathname === bare && !location.search;
    if (same && to.search) history.replaceState(state, title, url);
    else push(state, title, url);
    bare = to.search ? "" : to.pathname;
  };
  // Boxes that open stand outside the app's element, which alone says which theme it has.
  const theme = () => { document.documentElement.style.colorScheme = getComputedStyle(document.querySelector(".stApp")).colorScheme; };
  for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, () => { bare = ""; theme(); }, true);

  document.addEventListener("keydown", (event) => {
    const at = event.target;
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || at.isContentEditable;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing && at.type !== "range") return;
    const key = event.key;
    if (key === "/") {
      const box = document.querySelector('input[aria-label="Query"]');
      if (box) { event.preventDefault(); box.focus(); box.select(); }
      return;
    }
    if (key === "?") { event.preventDefault(); keys(); return; }
    if (!document.querySelector(".wb-column") || document.querySelector('[role="dialog"]')) return;
    if (grading && /^[0-3]$/.test(key)) {
      const card = focused();
      if (card) grade(card, Number(key));
      stopGrading();
      event.preventDefault();
      return;
    }
    stopGrading();
    if (key === "j" || key === "k") { move(key === "j" ? 1 : -1, 0); event.preventDefault(); return; }
    if (key === "h" || key === "l") { move(0, key === "l" ? 1 : -1); event.preventDefault(); return; }
    const card = focused();
    if (!card) return;
    if (key === "g") { grading = true; go(card); card.classList.add("wb-grading"); event.preventDefault(); return; }
    if (onCard[key]) { event.preventDefault(); onCard[key](card); }
  });
})();
