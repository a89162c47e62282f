"""The style of the Explain, Document and Corpus pages, beside the house's own: constants. No Streamlit."""

from __future__ import annotations

_CSS = """
h4.wb-chart{font-size:.95rem;margin:.4rem 0 0;padding:0}
.wb-standing{border:1px solid color-mix(in srgb,currentColor 18%,transparent);border-left:4px solid #0072B2;
 border-radius:.4rem;padding:.5rem .7rem;margin:.2rem 0 .6rem;overflow-wrap:anywhere}
.wb-standing h4{font-size:1rem;margin:0 0 .2rem;padding:0}
.wb-standing h4 .wb-dim{font-weight:400;font-size:.85rem}
.wb-standing p{margin:.25rem 0}.wb-standing{overflow-x:auto}.wb-standing .wb-table td{overflow-wrap:normal}
.wb-table .wb-short{white-space:nowrap}
.wb-places a{color:inherit!important}
.wb-places td:nth-child(2){min-width:11rem}
.wb-row{display:grid;grid-template-columns:11.5rem 3.2em minmax(0,1fr);gap:0 .5em;scroll-margin-top:9rem}
.wb-placed .wb-row{grid-template-columns:11.5rem 6.2em minmax(0,1fr)}
.wb-row .wb-at{opacity:.85;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.wb-row.wb-begins{border-top:1px solid color-mix(in srgb,#0072B2 55%,transparent)}
.wb-row.wb-target{background:color-mix(in srgb,#56B4E9 18%,transparent);box-shadow:inset 3px 0 #0072B2}
.wb-row .wb-margin{display:flex;gap:.4rem;align-items:center;min-width:0;padding-left:.4rem;font-size:.92em;
 height:1.35em}
.wb-row .wb-border{opacity:.75;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.wb-row .wb-copy{padding:0 .35rem;min-height:0;line-height:1.2;font-size:.95em}
mark.wb-now{background:#D55E00!important;color:#fff!important;outline:2px solid #D55E00;scroll-margin:40vh}
[data-testid="stLayoutWrapper"]:has(>.st-key-wb-w-document-moves){position:sticky;top:3.75rem;z-index:3}
.st-key-wb-w-document-moves{padding:.3rem;border-radius:.4rem;backdrop-filter:blur(9px);
 background:color-mix(in srgb,Canvas 82%,transparent)}
.wb-facts-table td:first-child{white-space:nowrap;opacity:.8}
.st-key-wb-w-corpus-part{margin-top:.9rem}
.wb-table[aria-label=Facts]{max-width:52rem}
.wb-places td:first-child:not(.wb-num){min-width:12rem}
.wb-bar-cell{vertical-align:middle!important;width:55%;min-width:4rem}
.wb-count{display:block;height:.6rem;border-radius:.15rem;background:#0072B2;min-width:2px}
.wb-links{list-style:none!important;margin:0!important;padding:0!important;font-size:.84rem}
.wb-links li{margin:.1rem 0!important;padding:0!important;overflow-wrap:anywhere}
.wb-links a{color:inherit!important}
.wb-links .wb-here{font-weight:600}
@media (max-width:640px){.st-key-wb-w-document-moves{gap:.35rem}.st-key-wb-w-document-moves kbd{display:none}
 .st-key-wb-w-document-moves button{min-height:2.1rem;padding:.1rem .55rem}
 .st-key-wb-w-document-moves [data-testid="stText"]{font-size:.85rem}}
@media (max-width:900px){.wb-placed .wb-row{grid-template-columns:6.2em minmax(0,1fr)}
 .wb-row{grid-template-columns:3.2em minmax(0,1fr)}
 .wb-row .wb-margin{grid-column:1/-1;height:auto}.wb-row .wb-margin:empty{display:none}}
"""

_SCROLL = """
((turned) => {
  const place = turned ? document.querySelector(".wb-doc .wb-turned") || document.querySelector(".wb-doc .wb-row")
    : document.querySelector("mark.wb-now") || document.querySelector(".wb-doc .wb-target");
  if (place) place.scrollIntoView({block: place.tagName === "MARK" ? "center" : "start"});
})"""


def css() -> str:
    """The style sheet as an HTML element."""
    return f"<style>{_CSS}</style>"


def scroll_script(number: int, turned: int = 0) -> str:
    """A script that brings the current match, else the target lines, into view.

    Args:
        number: Changes whenever it should run again: a browser runs the same element once.
        turned: The page of rows that somebody turned to, whose first row comes into view instead; 0: none.
    """
    return f"<script>/* {int(number)} */{_SCROLL}({int(turned)});</script>"
