"""The files behind a path: a file, a folder, or an archive; and one of them as a reader gets it."""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from lib.data.file_contents import ImportReport, check_size, max_bytes, read_contents
from lib.data.storage import DataError

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
SPREADSHEET_PARTS = (
    "[Content_Types].xml",
    "mimetype",
)  # in each .xlsx or .ods, which are zips


@dataclass(frozen=True)
class LogFile:
    """A file on disk or in an archive; `name` is its path below the folder or the archive."""

    name: str
    read: Callable[[], bytes]

    @property
    def folder(self) -> str:
        """Where it lies below the folder or the archive; "" at the top."""
        parent = str(PurePosixPath(self.name).parent)
        return "" if parent == "." else parent

    @property
    def stem(self) -> str:
        """Its name without folder and endings."""
        return PurePosixPath(self.name).name.partition(".")[0]


def find_files(path: Path, report: ImportReport) -> list[LogFile]:
    """The file, or each file of the folder or the archive that is not hidden, by name.

    Links that lead out of the folder are counted and not followed.
    """
    if not path.is_dir():
        files = _archive_files(LogFile(path.name, path.read_bytes), report)
        if not files:
            fix = "choose an archive that holds dialogs"
            raise DataError("is an empty archive", path, fix=fix)
        return files
    files = []
    root = path.resolve()
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if any(part.startswith(".") for part in PurePosixPath(name).parts):
            continue
        if not file.resolve().is_relative_to(root):
            report.excluded["files", f"lead out of the folder ({name!a})"] += 1
        elif file.is_file():
            files += _archive_files(LogFile(name, file.read_bytes), report)
    return files


def _archive_files(file: LogFile, report: ImportReport) -> list[LogFile]:
    """The members of a zip archive, else the file itself."""
    if not file.name.lower().endswith((".zip", ".eval")):
        return [file]
    try:
        archive = zipfile.ZipFile(io.BytesIO(file.read()))
    except zipfile.BadZipFile:
        return [file]
    members = [member for member in archive.infolist() if not member.is_dir()]
    try:
        check_size(sum(member.file_size for member in members), report)
    except DataError as error:
        raise DataError(error.problem, file.name, fix=error.fix) from error
    if any(member.filename in SPREADSHEET_PARTS for member in members):
        return [file]
    files = []
    for member in sorted(members, key=lambda member: member.filename):
        hidden = member.filename.startswith("__MACOSX") or "/." in f"/{member.filename}"
        if not hidden:
            files.append(
                LogFile(member.filename, _member_reader(archive, member, report))
            )
    return files


def _member_reader(
    archive, member: zipfile.ZipInfo, report: ImportReport
) -> Callable[[], bytes]:
    """A function that unpacks one member, also with the method zstd, which is newer."""

    def read() -> bytes:
        try:
            with archive.open(member) as stream:
                raw = stream.read(max_bytes(report) + 1)
        except NotImplementedError:
            raw = _zstd_member(archive, member, report)
        check_size(len(raw), report)
        return raw

    return read


def _zstd_member(archive, member: zipfile.ZipInfo, report: ImportReport) -> bytes:
    """A member packed by method 93, which Python's zipfile reads from 3.14 on."""
    import zstandard

    packed = archive.fp.getvalue()
    start = member.header_offset
    name_length = int.from_bytes(packed[start + 26 : start + 28], "little")
    extra_length = int.from_bytes(packed[start + 28 : start + 30], "little")
    start += 30 + name_length + extra_length
    stream = io.BytesIO(packed[start : start + member.compress_size])
    return (
        zstandard.ZstdDecompressor().stream_reader(stream).read(max_bytes(report) + 1)
    )


@dataclass
class Source:
    """A file as a reader gets it: its neighbours, and where it counts what it leaves out."""

    file: LogFile
    report: ImportReport
    files: dict[str, LogFile] = field(default_factory=dict)
    tables: dict[tuple[str, str], Any] = field(default_factory=dict)
    spans_files: bool = False

    @property
    def stem(self) -> str:
        """The name of the file without folder and endings."""
        return self.file.stem

    @property
    def folder_id(self) -> str | None:
        """The name of a folder of the file that is an id, as each dialog of CANDOR has one."""
        path = PurePosixPath(self.file.name)
        if self.report.path.is_file():
            path = PurePosixPath(self.report.path.resolve())
        return next((name for name in path.parts[:-1] if UUID.fullmatch(name)), None)

    @property
    def folder(self) -> str:
        """The folder of the file, below that which is read."""
        return self.file.folder

    def neighbours(self) -> Iterator[LogFile]:
        """The other files in the same folder, then those in the folders above it."""
        folders = [str(parent) for parent in PurePosixPath(self.file.name).parents]
        for folder in folders:
            for name, file in self.files.items():
                if str(PurePosixPath(name).parent) == folder and name != self.file.name:
                    yield file
        if len(self.files) == 1 and self.report.path.is_file():
            for path in sorted(self.report.path.parent.iterdir()):
                if path.is_file() and path.name != self.file.name:
                    yield LogFile(path.name, path.read_bytes)

    def sibling(self, *names: str) -> Any:
        """What a file of one of these names beside this one holds, or above; None without one."""
        for file in self.neighbours():
            if PurePosixPath(file.name).name in names:
                key = file.name
                self.report.used.add(key)
                if key not in self.report.siblings:
                    self.report.siblings[key] = read_contents(
                        file, ImportReport(file.name)
                    )
                return self.report.siblings[key]
        return None

    def cached(self, name: str, key: str) -> dict:
        """The rows of a file beside this one, by one of their fields."""
        if (name, key) not in self.tables:
            rows = self.sibling(name) or []
            if isinstance(rows, dict):  # a file of one line
                rows = [rows]
            self.tables[name, key] = {row[key]: row for row in rows if key in row}
        return self.tables[name, key]

    def sibling_rows(self, key: str) -> list[dict]:
        """The rows with a field in the other JSON files beside this one."""
        rows = []
        if len(self.files) > 1:
            for file in self.neighbours():
                if file.name.endswith((".jsonl", ".json")):
                    value = read_contents(file, ImportReport(file.name))
                    if isinstance(value, dict) and key in value:
                        value = [value]
                    elif isinstance(value, dict):  # such as {"requests": [...]}
                        lists = [v for v in value.values() if isinstance(v, list)]
                        value = sum(lists, [])
                    rows += [
                        row for row in value if isinstance(row, dict) and key in row
                    ]
        return rows

    def exclude(self, unit: str, reason: str, count: int = 1) -> None:
        """Count what is read and left out."""
        if count:
            self.report.excluded[unit, reason] += count

    def count_note(self, note: str) -> None:
        """Count utterances of which something is to be said, and which stay."""
        self.report.notes[note] += 1

    def count_branches(self, nodes: dict, path: list) -> None:
        """Count the messages that stand beside the current branch."""
        messages = sum(bool(node.get("message", node)) for node in nodes.values())
        on_path = sum(
            bool(nodes.get(name, {}).get("message", nodes.get(name))) for name in path
        )
        self.exclude(
            "utterances", "stand on branches that were left", messages - on_path
        )

    def guess(self, option: str, value: str, reason: str) -> None:
        """Say what was taken for what."""
        self.report.guesses[option, value, reason] += 1

    def warn(self, text: str) -> None:
        """Say what this file lacks."""
        self.report.guesses["kind", "context", text] = 1
