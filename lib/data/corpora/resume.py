"""A pooch downloader that goes on where a broken download stopped."""

import time
from pathlib import Path
from urllib.parse import urlsplit

import requests
from tqdm.auto import tqdm

CHUNK = 1 << 14  # what a dropped connection may cost


class ResumingDownload:
    """Download into a `.part` file by HTTP range requests; hand it over once it is complete.

    After a dropped connection it goes on from the byte reached, and gives up after `attempts`
    failures in a row without a new byte. What was received stays in the `.part` file for the next
    run. A server that ignores ranges starts from zero. pooch calls the object with the address and
    the file to write, and then checks the checksum.
    """

    def __init__(self, part: Path, attempts: int = 3, wait: float = 1.0, timeout: float = 30.0):
        self.part, self.attempts, self.wait, self.timeout = part, attempts, wait, timeout

    def __call__(self, url: str, output_file, pooch, check_only: bool = False) -> bool | None:
        if check_only:
            return requests.head(url, timeout=self.timeout, allow_redirects=True).ok
        failures = 0
        while True:
            before = self._received()
            try:
                self._fetch(url)
                break
            except requests.RequestException as error:
                failures = 1 if self._received() > before else failures + 1
                if failures >= self.attempts or not _passing(error):
                    raise OSError(self._reason(url, error)) from error
                time.sleep(self.wait * failures)
        self.part.replace(output_file)
        return None

    def _received(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _fetch(self, url: str) -> None:
        have = self._received()
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with requests.get(url, headers=headers, stream=True, timeout=self.timeout) as reply:
            if reply.status_code == 416:  # nothing lies beyond what we have: it was another file
                self.part.unlink()
                raise requests.ConnectionError("the partial file does not fit the file at the host")
            reply.raise_for_status()
            have = have if reply.status_code == 206 else 0
            length = reply.headers.get("Content-Length")
            self._write(reply, have, have + int(length) if length else None, url)

    def _write(self, reply: requests.Response, have: int, total: int | None, url: str) -> None:
        name = url.rsplit("/", 1)[-1]
        with (
            open(self.part, "ab" if have else "wb") as file,
            tqdm(total=total, initial=have, unit="B", unit_scale=True, desc=name) as bar,
        ):
            for chunk in reply.iter_content(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
        if total is not None and self._received() < total:
            raise requests.ConnectionError(f"{self._received()} of {total} bytes arrived")

    def _reason(self, url: str, error: requests.RequestException) -> str:
        if isinstance(error, requests.HTTPError):
            return str(error)
        kept = f"; {self._received()} bytes are kept for the next try" if self._received() else ""
        return f"no lasting connection to {urlsplit(url).hostname}{kept}"


def _passing(error: requests.RequestException) -> bool:
    """Whether trying again can help: not when the server says that the file is not there."""
    return not isinstance(error, requests.HTTPError) or error.response.status_code >= 500
