"""Loads a page of known objects again and again in a real browser, inside a live run, and prints how long each took.

python page_in_browser.py CHROMIUM LOADS OBJECTS DOCUMENT_BYTES OBJECT_BYTES

The server is on the left side and the browser on the right, so that the page flows forward. Sizes are those of whole
responses, heads included. Each load has a context of its own: no cache, and new connections.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 8080
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f645"
    "400000000049454e44ae426082"
)
"""A picture of one pixel. What follows its end is transferred, and not looked at."""

TIMES = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const objects = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/object"));
  const last = Math.max(page.responseEnd, ...objects.map(({ responseEnd }) => responseEnd));
  return { took_ms: last - page.fetchStart, objects: objects.length };
}"""
"""From the first thing that is asked of the network to the last byte of the last object."""


def serve(objects: int, document_bytes: int, object_bytes: int) -> None:
    """Answers until it is killed."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body are written together

        def do_GET(self) -> None:
            if self.path.startswith("/object"):
                self._answer("image/png", PNG, b"\0", object_bytes)
            elif self.path == "/":
                images = "".join(f'<img src="/object/{k}">' for k in range(objects))
                text = f'<!doctype html><html><head><link rel="icon" href="data:,"></head><body>{images}</body></html>'
                self._answer("text/html", text.encode(), b" ", document_bytes)
            else:
                self.send_error(404)

        def _answer(self, kind: str, content: bytes, filler: bytes, whole: int) -> None:
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nCache-Control: no-store\r\nContent-Length: %d\r\n\r\n"
            length = whole - len(head % whole)  # as many digits, as no size here is near a power of ten
            body = content + filler * (length - len(content))
            self.wfile.write((head % length).encode() + body)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            return

    ThreadingHTTPServer(("", PORT), Handler).serve_forever()


def main() -> None:
    """Starts the server on the other side and loads the page."""
    if sys.argv[1] == "serve":
        return serve(*map(int, sys.argv[2:]))
    from playwright.sync_api import sync_playwright

    chromium, loads, *page = sys.argv[1:]
    inside = ["nsenter", f"--net={os.environ['AQMLAB_LEFT_NS']}", sys.executable, __file__, "serve", *page]
    server = subprocess.Popen(inside)
    url = f"http://{os.environ['AQMLAB_LEFT']}:{PORT}/"
    try:
        _wait_for(url + "nothing")
        found = []
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            for _ in range(int(loads)):
                context = browser.new_context()
                view = context.new_page()
                view.goto(url, wait_until="load")
                found.append(view.evaluate(TIMES))
                context.close()
                time.sleep(0.3)
            browser.close()
        print("TIMES " + json.dumps(found), flush=True)
    finally:
        server.kill()


def _wait_for(url: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(url, timeout=2)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not answer")


if __name__ == "__main__":
    main()
