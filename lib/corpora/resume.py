"""A pooch downloader that goes on where a broken download stopped."""

import time
from pathlib import Path

import requests
from tqdm.auto import tqdm

CHUNK = 1 << 16


class ResumingDownload:
    """Download into a `.part` file by HTTP range requests; hand it over once it is complete.

    A dropped connection is tried again `attempts` times from the byte reached; what was received
    stays in the `.part` file for the next run. A server that ignores ranges starts from zero.
    pooch calls it with the address and the file to write, and then checks the checksum.
    """

    def __init__(self, part: Path, attempts: int = 4, wait: float = 1.0, timeout: float = 30.0):
        self.part, self.attempts, self.wait, self.timeout = part, attempts, wait, timeout

    def __call__(self, url: str, output_file, pooch, check_only: bool = False) -> bool | None:
        if check_only:
            return requests.head(url, timeout=self.timeout, allow_redirects=True).ok
        for attempt in range(1, self.attempts + 1):
            try:
                self._fetch(url)
                break
            except (requests.ConnectionError, requests.Timeout) as error:
                if attempt == self.attempts:
                    raise OSError(f"{url} after {attempt} attempts: {error}") from error
                time.sleep(self.wait * attempt)
        Path(self.part).replace(output_file)
        return None

    def _fetch(self, url: str) -> None:
        have = self.part.stat().st_size if self.part.is_file() else 0
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with requests.get(url, headers=headers, stream=True, timeout=self.timeout) as reply:
            if reply.status_code == 416:  # nothing lies beyond what we have: start anew
                self.part.unlink()
                raise requests.ConnectionError("the partial file does not fit the file at the host")
            reply.raise_for_status()
            have = have if reply.status_code == 206 else 0
            length = reply.headers.get("Content-Length")
            total = have + int(length) if length else None
            self._write(reply, have, total, url)
        if total is not None and self.part.stat().st_size < total:
            raise requests.ConnectionError(f"{self.part.stat().st_size} of {total} bytes arrived")

    def _write(self, reply: requests.Response, have: int, total: int | None, url: str) -> None:
        name = url.rsplit("/", 1)[-1]
        with (
            open(self.part, "ab" if have else "wb") as file,
            tqdm(total=total, initial=have, unit="B", unit_scale=True, desc=name) as bar,
        ):
            for chunk in reply.iter_content(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
