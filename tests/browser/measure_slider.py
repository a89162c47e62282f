"""Print how long a slider takes from the key press to the painted page: four columns of twenty results.

    python tests/browser/measure_slider.py CORPUS QUERY [PRESSES]

It is no test: a time depends on the machine and on what else runs, so machine, load and corpus are printed beside it. A
press counts until the hybrid column has changed and the browser has painted; the slider is `fusion.k`.
"""

from __future__ import annotations

import os
import platform
import socket
import statistics
import subprocess
import sys
from urllib.parse import urlencode

from conftest import ARGUMENTS, CHROMIUM, SERVE

WATCH = """() => {
  window.times = [];
  let pressed = 0, last = document.querySelector('section[aria-label="Hybrid results"]');
  document.addEventListener("keydown", () => { pressed = performance.now(); }, true);
  new MutationObserver(() => {
    const now = document.querySelector('section[aria-label="Hybrid results"]');
    if (!now || now === last) return;
    last = now;
    const start = pressed;
    requestAnimationFrame(() => {
      const painted = new MessageChannel();
      painted.port1.onmessage = () => window.times.push(performance.now() - start);
      painted.port2.postMessage(0);
    });
  }).observe(document.body, {subtree: true, childList: true});
}"""


def measure(address: str, query: str, presses: int) -> list[float]:
    """Milliseconds of each press, rising."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=120_000)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{address}/?{urlencode({'q': query, 'plan': 'default limit=20'})}", timeout=60_000)
        cards = page.locator('section[aria-label="Hybrid results"] article')
        cards.first.wait_for(timeout=120_000)
        running = '[data-testid="stApp"][data-test-script-state="notRunning"]'
        page.wait_for_selector(running, state="attached", timeout=60_000)
        page.locator(".st-key-wb-w-fusion-k input[type=range]").focus()
        page.evaluate(WATCH)
        for n in range(presses):
            page.keyboard.press("ArrowRight" if n % 2 else "ArrowLeft")
            page.wait_for_function(f"window.times.length > {n}", timeout=30_000)
            page.wait_for_selector(running, state="attached", timeout=30_000)
        times = page.evaluate("window.times")
        browser.close()
    return sorted(float(t) for t in times)


def main() -> None:
    """Start the app, press, print."""
    corpus, query = sys.argv[1], sys.argv[2]
    presses = int(sys.argv[3]) if len(sys.argv) > 3 else 51
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-u", "-c", SERVE, corpus, str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    try:
        for line in server.stdout:
            if f":{port}" in line:
                break
        times = measure(f"http://127.0.0.1:{port}", query, presses)
    finally:
        server.terminate()
        server.wait(30)
    p95 = times[min(len(times) - 1, round(0.95 * len(times)))]
    print(
        f"slider to painted page: p50 {statistics.median(times):.0f} ms, p95 {p95:.0f}, least {times[0]:.0f}, n {len(times)}"
    )
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, corpus {corpus}")


if __name__ == "__main__":
    main()
