"""The style sheet and the one script of the pages: constants, without a word from any document.

Colours are mixed from the text's own colour, so they fit the light and the dark theme and whatever theme somebody sets.
The script (`script.js`) answers the cards' buttons and the keys; it is one constant file, listens on the document once, and
reads only what a button carries, so running it is safe. Without it the citation can still be selected whole.
"""

from __future__ import annotations

import functools
from pathlib import Path

from workbench.ui.cards import label_rules

_CSS = """
[data-testid="stMainBlockContainer"]{padding:2.6rem 1.1rem 3rem}
[data-testid="stSidebarUserContent"]{padding-top:0}
[data-testid="stSidebarUserContent"] [data-testid="stVerticalBlock"]{gap:.55rem}
[data-testid="stSidebarUserContent"] [data-testid="stButtonGroup"] button[role=radio]{padding-inline:.3rem}
.wb-column h3{font-size:1.05rem;margin:0 0 .15rem;padding:0;
 border-bottom:2px solid color-mix(in srgb,currentColor 22%,transparent)}
.wb-msg{font-size:.76rem;margin:.1rem 0 .35rem;opacity:.78}
.wb-card{border:1px solid color-mix(in srgb,currentColor 16%,transparent);border-radius:.45rem;padding:.5rem .55rem;
 margin:0 0 .5rem;font-size:.82rem;line-height:1.38;overflow-wrap:anywhere;min-width:0;contain:content;
 content-visibility:auto;contain-intrinsic-size:auto 210px}
.wb-head{display:flex;gap:.45rem;align-items:baseline}
.wb-rank{font-weight:700;font-size:1rem;font-variant-numeric:tabular-nums;min-width:1.2em;text-align:right}
.wb-title{font-weight:600;color:inherit!important;text-decoration:none;display:-webkit-box;-webkit-line-clamp:2;
 -webkit-box-orient:vertical;overflow:hidden}
.wb-title:hover,.wb-title:focus-visible{text-decoration:underline}
.wb-section{font-size:.75rem;opacity:.85;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.wb-facts,.wb-ranks{display:flex;flex-wrap:wrap;gap:.1rem .55rem;align-items:baseline;margin-top:.15rem;font-size:.75rem}
.wb-label{border-left:.45rem solid;padding-left:.3rem;font-weight:600}
.wb-score{font-variant-numeric:tabular-nums}
.wb-dim,.wb-more,.wb-none{opacity:.68}
.wb-src b{font-variant-numeric:tabular-nums}
.wb-dot{display:inline-block;width:.6em;height:.6em;border-radius:50%;margin-right:.25em}
.wb-up,.wb-down,.wb-same{margin-left:.2em;opacity:.85;font-size:.95em}
.wb-bar{display:flex;height:.5rem;border-radius:.25rem;overflow:hidden;margin:.3rem 0 .1rem;
 background:color-mix(in srgb,currentColor 10%,transparent)}
.wb-bar span+span{border-left:2px solid color-mix(in srgb,currentColor 4%,white)}
.wb-text{margin:.3rem 0;white-space:pre-wrap;unicode-bidi:isolate;overflow:hidden;display:-webkit-box;
 -webkit-line-clamp:8;-webkit-box-orient:vertical}
.wb-lines{margin:.3rem 0;font-family:"Source Code Pro",ui-monospace,monospace;font-size:.74rem;line-height:1.35}
.wb-line{display:flex;gap:.5em}
.wb-line.wb-hit{background:color-mix(in srgb,#56B4E9 16%,transparent)}
.wb-line.wb-target{background:color-mix(in srgb,#56B4E9 18%,transparent);box-shadow:inset 3px 0 #0072B2}
.wb-line{scroll-margin-top:9rem}
.wb-no{opacity:.6;text-align:right;min-width:2.6em;user-select:none;flex:none;font-variant-numeric:tabular-nums}
.wb-src-line{white-space:pre-wrap;overflow-wrap:anywhere;min-width:0;unicode-bidi:isolate;flex:1}
.stHtml mark,.wb-text mark,.wb-lines mark{background:color-mix(in srgb,#F0E442 55%,transparent);color:inherit;
 border-radius:.15em;padding:0 .06em;font-weight:600}
.wb-code{font-family:ui-monospace,monospace;font-size:.85em;border:1px dashed color-mix(in srgb,currentColor 45%,transparent);
 border-radius:.2em;padding:0 .15em;unicode-bidi:isolate}
.wb-cite{display:flex;gap:.4rem;align-items:center;justify-content:space-between;font-size:.74rem}
.wb-cite a{color:inherit!important;user-select:all;text-decoration-color:color-mix(in srgb,currentColor 45%,transparent)}
.wb-where{white-space:nowrap}
.wb-copy{font:inherit;color:inherit;background:none;border:1px solid color-mix(in srgb,currentColor 30%,transparent);
 border-radius:.3rem;padding:0 .4rem;cursor:pointer;flex:none;min-height:1.6rem}
.wb-copy:hover,.wb-copy:focus-visible{border-color:currentColor}
.wb-card a:focus-visible,.wb-copy:focus-visible{outline:2px solid #56B4E9;outline-offset:1px}
.wb-alert{border-left:4px solid #D55E00;background:color-mix(in srgb,#D55E00 11%,transparent);padding:.45rem .6rem;
 margin:.3rem 0 .5rem;border-radius:.25rem;font-size:.84rem;overflow-wrap:anywhere}
.wb-alert b{font-weight:600}
.wb-told{border-left:4px solid #0072B2;background:color-mix(in srgb,#56B4E9 12%,transparent);padding:.4rem .6rem;
 margin:.2rem 0 .4rem;border-radius:.25rem;font-size:.84rem;overflow-wrap:anywhere}
.wb-card:focus{outline:2px solid #56B4E9;outline-offset:1px}
.wb-added{border-style:dashed;opacity:.92}
.wb-badge{font-size:.7rem;font-weight:500;margin-left:.5em;padding:.05em .5em;border-radius:1em;white-space:nowrap;
 background:color-mix(in srgb,#56B4E9 30%,transparent)}
.wb-column h3{overflow-wrap:anywhere}
.wb-noted{border-left:3px solid #F0E442;padding-left:.45rem;margin:.25rem 0;font-size:.78rem;white-space:pre-wrap}
.wb-acts{display:flex;flex-wrap:wrap;gap:.15rem .5rem;align-items:center;margin-top:.25rem;font-size:.72rem}
.wb-act{font:inherit;color:inherit!important;background:none;border:0;padding:.1rem 0;cursor:pointer;text-decoration:underline;
 text-decoration-color:color-mix(in srgb,currentColor 40%,transparent);text-underline-offset:.15em}
.wb-act:hover,.wb-act:focus-visible{text-decoration-color:currentColor}
.wb-grades{display:inline-flex;margin-left:auto}
.wb-grades button{font:inherit;color:inherit;background:none;cursor:pointer;min-width:1.55rem;min-height:1.4rem;padding:0;
 border:1px solid color-mix(in srgb,currentColor 30%,transparent);margin-left:-1px}
.wb-grades button[aria-pressed=true]{background:#0072B2;border-color:#0072B2;color:#fff;font-weight:700}
.wb-grades button:hover{background:color-mix(in srgb,#56B4E9 35%,transparent);color:inherit}
.wb-act:focus-visible,.wb-grades button:focus-visible{outline:2px solid #56B4E9;outline-offset:1px}
.wb-card.wb-grading{outline:2px dashed #E69F00;outline-offset:1px}
.wb-overlap{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;font-size:.74rem;opacity:.9}
.wb-pair i{opacity:.7;margin-left:.35em}
.wb-plan{font-size:.8rem}.wb-plan .wb-table{font-size:.74rem}.wb-plan .wb-table td,.wb-plan .wb-table th{padding:.1rem .3rem}
.wb-planline{display:flex;gap:.4rem;align-items:flex-start;justify-content:space-between}
.wb-plantext{overflow-wrap:anywhere;white-space:pre-wrap;font-size:.78rem}
.wb-keys{border:1px solid;border-radius:.5rem;padding:1rem 1.3rem;max-width:30rem;font-size:.9rem}
.wb-keys td{padding:.1rem .8rem .1rem 0}.wb-keys kbd{border:1px solid;border-radius:.25rem;padding:0 .4em;font:inherit}
.st-key-wb-events{display:none}
.st-key-wb-boxes button{min-height:2rem;padding:.1rem .6rem;font-size:.85rem}
.st-key-wb-boxes{gap:.4rem}
.wb-table{border-collapse:collapse;font-size:.84rem;width:100%}
.wb-table th,.wb-table td{text-align:left;padding:.25rem .5rem;vertical-align:top;overflow-wrap:anywhere;
 border-bottom:1px solid color-mix(in srgb,currentColor 16%,transparent)}
.wb-table th{overflow-wrap:normal}.wb-table td:first-child{min-width:4.6rem}
.wb-table td.wb-num,.wb-table th.wb-num{text-align:right;font-variant-numeric:tabular-nums;overflow-wrap:normal}
.wb-table .wb-named,h3.wb-named{background:color-mix(in srgb,#F0E442 30%,transparent)}
.wb-table td:first-child code{white-space:nowrap}
.wb-note{font-size:.8rem;margin:0}
.wb-note dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem 1rem;margin:.4rem 0!important;padding:0}
.wb-note dt,.wb-note dd{margin:0!important;padding:0!important;font-size:.84rem!important;overflow-wrap:anywhere}
.wb-histogram{position:relative;height:62px;display:flex;align-items:flex-end;gap:1px;margin-top:.2rem}
.wb-histogram span{flex:1;min-width:0;border-radius:1px 1px 0 0}
.wb-histogram i{position:absolute;top:-3px;bottom:-3px;border-left:2px dashed #D55E00}
.wb-axis{display:flex;justify-content:space-between;font-size:.7rem;opacity:.75;margin:0}
.wb-live{font-size:.95rem;font-variant-numeric:tabular-nums}.wb-live p{margin:.1rem 0 0!important;font-size:.74rem;opacity:.8}
p.wb-live{font-size:.78rem;margin:0}
.wb-better,.wb-worse{font-weight:600;padding:0 .3em;border-radius:.25em}
.wb-better{background:color-mix(in srgb,#009E73 28%,transparent)}.wb-worse{background:color-mix(in srgb,#D55E00 28%,transparent)}
[data-testid="stLayoutWrapper"]:has(>.st-key-wb-live){position:sticky;top:0;z-index:4}
.st-key-wb-live{padding:.3rem 0;backdrop-filter:blur(9px)}
.st-key-wb-live-buttons button{min-height:2rem;padding:.1rem .6rem;font-size:.82rem}
.wb-table a{color:inherit!important;text-decoration-color:color-mix(in srgb,currentColor 45%,transparent)}
.wb-table a:hover,.wb-table a:focus-visible{text-decoration-color:currentColor}
.wb-button{display:inline-block;border:1px solid color-mix(in srgb,currentColor 35%,transparent);border-radius:.4rem;
 padding:.25rem .7rem;text-decoration:none;color:inherit!important;font-size:.88rem}
.wb-button:hover,.wb-button:focus-visible{border-color:currentColor;outline:none}
.wb-doc{max-width:70rem;font-size:.85rem}
.wb-scroll{overflow-x:auto}.wb-scroll .wb-table td{overflow-wrap:break-word}.wb-scroll .wb-copy{white-space:nowrap}
@media (max-width:640px){[data-testid="stMainBlockContainer"]{padding:3.2rem .8rem 2rem}.wb-copy{min-height:2rem;padding:0 .7rem}
 .wb-acts{font-size:.84rem;gap:.3rem .9rem}.wb-grades button{min-width:2.3rem;min-height:2.1rem}
 .wb-table td:first-child code{white-space:normal;overflow-wrap:normal}}
@media (prefers-reduced-motion:no-preference){.wb-bar span{transition:width .12s}}
"""

_SCROLL = """
(() => {
  const named = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  const place = named || document.querySelector(".wb-target");
  if (!place) return;
  if (named) named.classList.add("wb-named");
  place.scrollIntoView({block: named ? "center" : "start"});
})();
"""


def css() -> str:
    """The style sheet as an HTML element."""
    return f"<style>{_CSS}{label_rules()}</style>"


@functools.cache
def script() -> str:
    """The pages' script as an HTML element; constant."""
    return f"<script>{Path(__file__).with_name('script.js').read_text(encoding='utf-8')}</script>"


def scroll_script() -> str:
    """A script that brings the named line of a page, or the target line of a document, into view; constant."""
    return f"<script>{_SCROLL}</script>"
