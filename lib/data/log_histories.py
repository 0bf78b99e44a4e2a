"""Requests to a model, each with the history so far: every reply once, with the talk before it."""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from lib.data.dialogs import Dialog, Utterance
from lib.data.file_contents import UnknownFormat
from lib.data.log_parts import as_script, is_talk

WINDOWS_LOOKED_AT = 200
WINDOWS_OF = 3  # dialogs, from the last of which a request may go on


@dataclass(eq=False)
class LoggedRequest:
    """What went into a model, and what came out; a dialog of a file that may repeat another one.

    Attributes:
        places: of what is talk among the utterances of the dialog, and of empty replies.
        histories: a hash of all talk up to each of them. Two requests with the same have the same
            words up to there.
        replies: which of them are the bot's.
        has_reply: whether the last of all utterances is a reply, and no user's words (as of a
            request that failed), nor the call of a tool or its result (a step of an agent).
    """

    dialog: Dialog
    places: list[int]
    histories: list[int]
    replies: list[bool]
    has_reply: bool

    def talk(self) -> list[tuple[str, str]]:
        """Who spoke, and the words."""
        return [
            speaker_and_words(self.dialog.utterances[place]) for place in self.places
        ]

    def answers(self) -> list[int]:
        """Where the replies to a user stand; what the bot says before that answers nothing."""
        if False not in self.replies:
            return []
        opening = self.replies.index(False)
        return [
            n for n, is_reply in enumerate(self.replies) if is_reply and n > opening
        ]


def read_request(dialog: Dialog, scope: str = "") -> LoggedRequest:
    """A dialog as a request; its histories are the same as another's within a scope only.

    Where no role is known, the replies are those of who speaks last.
    """
    utterances = dialog.utterances
    places = []
    histories = []
    so_far = hash(scope)
    for place, utterance in enumerate(utterances):
        if is_talk(utterance):
            so_far = hash((so_far, speaker_and_words(utterance)))
            histories.append(so_far)
        elif is_empty_reply(utterance):
            before = histories[-1] if histories else so_far
            histories.append(hash((before, "")))
        else:
            continue
        places.append(place)
    talk = [utterances[place] for place in places]
    replies = [utterance.role == "assistant" for utterance in talk]
    if talk and talk[-1].role is None and not any(replies):
        replies = [utterance.speaker == talk[-1].speaker for utterance in talk]
    ends_in_talk = bool(places) and places[-1] == len(utterances) - 1
    has_reply = ends_in_talk and utterances[-1].role != "user"
    return LoggedRequest(dialog, places, histories, replies, has_reply)


def is_empty_reply(utterance: Utterance) -> bool:
    """Whether a bot answered with an empty text, which stands in no context."""
    return utterance.role == "assistant" and utterance.text is not None


def speaker_and_words(utterance: Utterance) -> tuple[str, str]:
    """Who wrote an utterance, by the role if it is known, and its words."""
    return utterance.role or utterance.speaker, utterance.text.strip()


def join_histories(
    dialogs: list[Dialog], source, *, by_session: bool = False
) -> list[Dialog]:
    """Requests of one thread as one dialog: each reply once, with the history it was made from.

    Of requests whose history is the beginning of another's the longest stays, and takes over the
    ratings of their replies. Another request that begins as they do is a branch, whose utterances
    up to there are context only. Ids are those of sessions, and not of requests, where the format
    says so (`by_session`), or where the requests of one go on from each other; an id of one request
    may then still be that of the request.
    """
    leave_out_empty_calls(dialogs)
    requests = [read_request(dialog) for dialog in dialogs]
    threads = threads_of(requests)
    begin_each_time_anew = log_no_histories(threads)
    names: dict[int, str] = {}
    if not by_session and any(map(are_of_session, threads.values())):
        by_session = True
        names = take_names_of_requests(threads)
    if by_session:
        find_sessions(requests)
        threads = threads_of(requests)
    nameless = [
        request for request in requests if not (by_session and request.dialog.id)
    ]
    check_windows([request.dialog for request in nameless])
    log_each = log_each_request(nameless)
    weave = begin_each_time_anew and (by_session or not log_each)
    sessions: list[Dialog] = []
    others: list[Dialog] = []
    for thread in threads.values():
        joined = sessions if by_session and thread[0].dialog.id else others
        if weave and begin_anew(thread):
            joined.append(woven_requests(thread))
        else:
            joined += join_thread(thread, source)
    if log_each:
        others = join_requests([read_request(dialog) for dialog in others], source)
    for dialog in others:
        dialog.id = dialog.id or names.get(id(dialog), "")
    return sessions + others


def log_no_histories(threads: Mapping[str | int, list[LoggedRequest]]) -> bool:
    """Whether the requests of most threads hold only what was asked at a time."""
    n_with = sum(map(hold_histories, threads.values()))
    n_without = sum(map(hold_no_history, threads.values()))
    return not n_with or n_without > n_with


def take_names_of_requests(
    threads: Mapping[str | int, list[LoggedRequest]],
) -> dict[int, str]:
    """The ids that only one request has, which may be its own and no session's; it loses it.

    By the identity of its dialog.
    """
    names = {}
    for thread in threads.values():
        if len(thread) == 1:
            dialog = thread[0].dialog
            names[id(dialog)] = dialog.id
            dialog.id = ""
    return names


def leave_out_empty_calls(dialogs: list[Dialog]) -> None:
    """Take no empty message for a reply where a file has them for the calls of tools.

    The result of the tool then follows, as a message that may be empty, too.
    """
    pairs = (pair for dialog in dialogs for pair in pairwise(dialog.utterances))
    if not any(is_call_with_result(before, after) for before, after in pairs):
        return
    for dialog in dialogs:
        for utterance in dialog.utterances:
            utterance.text = utterance.text or None


def is_call_with_result(utterance: Utterance, following: Utterance) -> bool:
    """Whether an empty message of the bot stands before the result of a tool."""
    is_empty = utterance.text == "" and utterance.role == "assistant"
    is_blank = following.role == "user" and following.text == ""
    return is_empty and (following.role == "tool" or is_blank)


def without_beginnings(
    dialogs: list[Dialog], source, *, by_session: bool = False
) -> list[Dialog]:
    """Drop each dialog that another one goes on from, where a file logs each request.

    The ratings and the model of a dropped dialog go to its reply in a longer one. Where ids are of
    sessions, no dialog goes on from one with another id.
    """
    requests = [
        read_request(dialog, dialog.id if by_session else "") for dialog in dialogs
    ]
    if not log_each_request(requests):
        return dialogs
    return join_requests(requests, source)


def log_each_request(requests: Sequence[LoggedRequest]) -> bool:
    """Whether most requests that go on from an earlier one go on from one in the file."""
    ends = {request.histories[-1] for request in requests if request.histories}
    earlier = [
        request.histories[end] for request in requests for end in earlier_ends(request)
    ]
    n_logged = sum(history in ends for history in earlier)
    return n_logged > len(earlier) / 2


def earlier_ends(request: LoggedRequest) -> list[int]:
    """Where in the talk of a request the one before it ended; nowhere in that of a first one.

    Where requests are logged without their replies, the one before ended in what the user asked.
    """
    answers = request.answers()
    if answers and request.replies[-1]:
        return answers[-2:-1]
    return [answers[-1] - 1] if len(answers) > 1 else []


def join_requests(requests: list[LoggedRequest], source) -> list[Dialog]:
    """The longest of the requests of a file that logs each of them."""
    source.guess(
        "kind", "requests", "each repeats the history: the longest of each are read"
    )
    return longest_dialogs(requests, times_given(requests), source)


def times_given(requests: Sequence[LoggedRequest]) -> Counter[int]:
    """How often each reply was given, by its history.

    As often as it was logged: two dialogs may begin with the same words. If it was not, then once
    for each way in which the talk goes on from it.
    """
    logged = Counter(r.histories[-1] for r in requests if r.has_reply)
    history_before: dict[int, int | None] = {}
    depth: dict[int, int] = {}
    for request in requests:
        before = None
        for n, history in enumerate(request.histories):
            depth[history] = n
            history_before[history] = before
            before = history
    times: Counter[int] = Counter()
    n_following: Counter[int | None] = Counter()
    for history in sorted(depth, key=depth.__getitem__, reverse=True):
        times[history] = logged[history] or n_following[history] or 1
        n_following[history_before[history]] += times[history]
    return times


def join_thread(thread: list[LoggedRequest], source) -> list[Dialog]:
    """The longest of the requests of one thread, in which each reply was given once."""
    if len(thread) == 1:
        return [thread[0].dialog]
    last = [request.dialog.utterances[-1:] for request in thread]
    if all(utterances and utterances[0].time for utterances in last):
        thread = sorted(thread, key=lambda request: request.dialog.utterances[-1].time)
    thread = join_windows(thread, source)
    histories = {history for request in thread for history in request.histories}
    return longest_dialogs(thread, Counter(histories), source)


def longest_dialogs(
    requests: list[LoggedRequest], times: Counter[int], source
) -> list[Dialog]:
    """The dialogs of the requests that bring a reply which no longer one has.

    Each reply counts so many times; in a dialog that goes on from it another time, it and all
    before it are context only. The ratings and the model of a dropped request go to its reply.
    """
    left = Counter(times)
    kept = set()
    dropped = []
    replies: dict[int, deque[Utterance]] = {}  # at or after each history
    for request in sorted(requests, key=lambda r: len(r.histories), reverse=True):
        n_known = n_known_before(request, left)
        is_new = any(request.replies[n_known:])
        if not is_new and request.histories and request.histories[-1] in replies:
            dropped.append(request)
            continue
        kept.add(id(request))
        take_for_context(request, n_known)
        if request.has_reply:
            logged = request.dialog.utterances[-1]
            logged.system = logged.system or request.dialog.system
        reply = None
        for n in reversed(range(n_known, len(request.histories))):
            history = request.histories[n]
            if request.replies[n]:
                left[history] -= 1
                reply = request.dialog.utterances[request.places[n]]
            of_history = replies.setdefault(history, deque())
            if reply:
                of_history.append(reply)
    for request in dropped:
        alike = replies[request.histories[-1]]
        if alike:
            take_over(alike.popleft() if len(alike) > 1 else alike[0], request)
    source.exclude("dialogs", "are the beginning of a longer one", len(dropped))
    return [request.dialog for request in requests if id(request) in kept]


def n_known_before(request: LoggedRequest, left: Counter[int]) -> int:
    """How much of the talk of a request other dialogs have, up to their last common reply."""
    n_known = 0
    for n, history in enumerate(request.histories):
        if request.replies[n] and not left[history]:
            n_known = n + 1
    return n_known


def take_for_context(request: LoggedRequest, n: int) -> None:
    """Make so much of the talk of a request context only."""
    if n:
        end = request.places[n - 1] + 1
        utterances = request.dialog.utterances
        utterances[:end] = as_script(utterances[:end])


def take_over(reply: Utterance, request: LoggedRequest) -> None:
    """Give a reply the ratings and the model that it had where it was logged."""
    last = request.dialog.utterances[-1]
    reply.ratings += [*request.dialog.ratings, *last.ratings]
    reply.system = reply.system or last.system or request.dialog.system


def threads_of(requests: list[LoggedRequest]) -> dict[str | int, list[LoggedRequest]]:
    """Requests by the ids of their threads; one without an id is a thread of its own."""
    threads: dict[str | int, list[LoggedRequest]] = {}
    for number, request in enumerate(requests):
        threads.setdefault(request.dialog.id or number, []).append(request)
    return threads


def are_of_session(thread: list[LoggedRequest]) -> bool:
    """Whether the requests of an id are of a user who goes on, not of an agent at one task.

    The calls of an agent all begin with what it was asked.
    """
    return hold_histories(thread) or hold_no_history(thread)


def hold_histories(thread: list[LoggedRequest]) -> bool:
    """Whether a user goes on, in one of the requests of an id, after the reply to another.

    The calls of an agent in one trace go on from each other, too, but without the user's words.
    """
    if len(thread) == 1:
        return False
    ends = {request.histories[-1] for request in thread if request.histories}
    for request in thread:
        replies = request.replies
        for history, is_reply, is_next in zip(
            request.histories, replies, replies[1:], strict=False
        ):
            if is_reply and not is_next and history in ends:
                return True
    return False


def begin_anew(thread: list[LoggedRequest]) -> bool:
    """Whether each request of a session holds only what was asked at a time, and what came back.

    One that failed has no answer, and one that called a tool may have several; most have one.
    """
    n_answers = []
    for request in thread:
        utterances = request.dialog.utterances
        roles = [utterances[place].role for place in request.places]
        if roles[:1] != ["user"] or set(roles[1:]) - {"assistant"}:
            return False
        if utterances[-1].time is None:
            return False
        n_answers.append(len(roles) - 1)
    return len(thread) > 1 and 1 in n_answers


def hold_no_history(thread: list[LoggedRequest]) -> bool:
    """Whether each request of a session begins anew, and not only as what is asked again does."""
    first = {request.histories[0] for request in thread if request.histories}
    return begin_anew(thread) and len(first) > 1


def woven_requests(thread: list[LoggedRequest]) -> Dialog:
    """One dialog of the requests of a session that hold no history, in the order of time."""
    thread = sorted(thread, key=lambda request: request.dialog.utterances[-1].time)
    dialog = Dialog(thread[0].dialog.id, [], thread[0].dialog.system)
    for request, following in zip_longest(thread, thread[1:]):
        if following and asks_again(following, request):
            continue
        for reply in filter(is_talk, request.dialog.utterances):
            if reply.role == "assistant":
                reply.system = request.dialog.system
        dialog.utterances += request.dialog.utterances
    return dialog


def asks_again(request: LoggedRequest, before: LoggedRequest) -> bool:
    """Whether a request repeats one that had no answer, or brings more, as after a tool.

    It then takes over the ratings of the one before.
    """
    n = len(before.histories)
    brings_more = n == 1 or len(request.histories) > n
    if not brings_more or request.histories[:n] != before.histories:
        return False
    answers = [place for place in request.answers() if place >= n - 1]
    if answers:
        take_over(request.dialog.utterances[request.places[answers[0]]], before)
    return True


def find_sessions(requests: list[LoggedRequest]) -> None:
    """Give a request without an id that of a session which it fits, if there is one.

    It fits a session that has its talk, and did not log it; else one that ends where it goes on, or
    that goes on from there, too.
    """
    without_id = [request for request in requests if not request.dialog.id]
    if not without_id:
        return
    sessions = Sessions()
    for thread in threads_of(requests).values():
        if thread[0].dialog.id:
            sessions.add(thread[0].dialog.id, thread)
    logged_elsewhere = set()
    for request in sorted(without_id, key=lambda r: len(r.histories)):
        name = sessions.lacking(request)
        if not name:
            name = sessions.gone_on_from(request, logged_elsewhere)
        if name:
            request.dialog.id = name
        else:
            logged_elsewhere.update(request.histories[-1:])


class Sessions:
    """The sessions that have a history, those that end in it, and those that did not log it."""

    def __init__(self) -> None:
        self.having: defaultdict[int, list[str]] = defaultdict(list)
        self.ending: defaultdict[int, list[str]] = defaultdict(list)
        self.unlogged: defaultdict[int, list[str]] = defaultdict(list)

    def add(self, name: str, thread: list[LoggedRequest]) -> None:
        """Add a session with all of its requests."""
        gone_on = {history for request in thread for history in request.histories[:-1]}
        logged = {request.histories[-1] for request in thread if request.has_reply}
        histories = {history for request in thread for history in request.histories}
        for history in histories:
            self.having[history].append(name)
            if history not in gone_on:
                self.ending[history].append(name)
            if history not in logged:
                self.unlogged[history].append(name)

    def lacking(self, request: LoggedRequest) -> str | None:
        """A session that has the talk of a request, and did not log its reply; it does so now."""
        if not request.histories:
            return None
        history = request.histories[-1]
        if not request.has_reply:
            return next(iter(self.having.get(history, ())), None)
        names = self.unlogged.get(history)
        return names.pop() if names else None

    def gone_on_from(self, request: LoggedRequest, elsewhere: set[int]) -> str | None:
        """A session that a request goes on from, and then has; it may as well do so elsewhere."""
        answers = request.answers()
        if request.has_reply:
            answers = answers[:-1]
        for place in reversed(answers):
            history = request.histories[place]
            name = None
            if self.ending.get(history):
                name = self.ending[history].pop()
            elif history not in elsewhere:
                name = next(iter(self.having.get(history, ())), None)
            if name:
                self.go_on(name, request.histories[place + 1 :], request.has_reply)
            if name or history in elsewhere:
                return name
        return None

    def go_on(self, name: str, new: list[int], has_reply: bool) -> None:
        """Take new histories into a session, of which the last is logged if it is a reply."""
        for history in new:
            self.having[history].append(name)
            self.unlogged[history].append(name)
        self.ending[new[-1]].append(name)
        if has_reply:
            self.unlogged[new[-1]].pop()


def join_windows(thread: list[LoggedRequest], source) -> list[LoggedRequest]:
    """The requests of a thread, of which some may hold only the last messages.

    Such a request goes on from no reply as the others have it, but begins with the end of one of
    those before. Another request, as for a title, may stand between.
    """
    whole = [request for request in thread if not request.histories]
    known: set[int] = set()
    extended: set[int] = set()  # dialogs, by their identity
    # Dialogs, each with all of its talk so far.
    latest: deque[tuple[Dialog, list]] = deque(maxlen=WINDOWS_OF)
    for request in thread:
        if not request.histories:
            continue
        words = request.talk()
        found = None
        if not any(request.histories[place] in known for place in request.answers()):
            found = overlapping(latest, words)
        if found:
            dialog, talk, overlap = found
            take_window(dialog, request, overlap)
            talk += words[overlap:]
            extended.add(id(dialog))
            source.exclude("dialogs", "go on from the last messages of another")
        else:
            whole.append(request)
            known.update(request.histories)
            latest.append((request.dialog, words))
    return [
        read_request(request.dialog) if id(request.dialog) in extended else request
        for request in whole
    ]


def overlapping(
    latest: deque[tuple[Dialog, list]], words: list
) -> tuple[Dialog, list, int] | None:
    """The latest dialog whose talk ends as a request begins, and in how many utterances."""
    for dialog, talk in reversed(latest):
        n = n_overlapping(talk, words)
        if n:
            return dialog, talk, n
    return None


def take_window(dialog: Dialog, request: LoggedRequest, overlap: int) -> None:
    """Add to a dialog what a later request of its thread brings after so many utterances."""
    new = request.dialog.utterances[request.places[overlap - 1] + 1 :]
    for utterance in new:
        utterance.system = utterance.system or request.dialog.system
    new[-1].ratings += request.dialog.ratings
    dialog.utterances += new


def n_overlapping(talk: list[tuple], others: list[tuple]) -> int:
    """How many utterances at the end of a talk begin another one; 0 for fewer than two."""
    for n in range(min(len(talk), len(others) - 1), 1, -1):
        if talk[-n] == others[0] and talk[-n:] == others[:n]:
            return n
    return 0


def check_windows(dialogs: list[Dialog]) -> None:
    """Refuse records that each hold only the last messages of a dialog: their replies recur.

    Raises:
        UnknownFormat: several records begin with the end of the one before, and not with all of it.
    """
    talks = [read_request(dialog).talk() for dialog in dialogs[:WINDOWS_LOOKED_AT]]
    n_overlaps = 0
    for before, after in pairwise(talks):
        n_overlaps += n_overlapping(before[1:], after) > 0
    if n_overlaps > 1 and n_overlaps > len(talks) / 4:
        raise UnknownFormat(
            "has records that begin with the last messages of the one before: replies recur",
            fix="keep the last two messages of all but the first, or write a row per message",
        )
