"""Logs of dialogs as people keep them: what format a file has, and the dialogs in it."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from lib.data import log_assistants as assistants
from lib.data import log_chats as chats
from lib.data import log_comparisons as comparisons
from lib.data import log_corpora as corpora
from lib.data import log_evaluations as evaluations
from lib.data import log_histories as histories
from lib.data import log_platforms as platforms
from lib.data import log_prompts as prompts
from lib.data import log_texts as texts
from lib.data import log_traces as traces
from lib.data.corpora import snake_case
from lib.data.dialogs import (
    WORDS,
    Dialog,
    join_rated,
    speaker_role,
)
from lib.data.file_contents import UnknownFormat, parse_list
from lib.data.log_files import Source
from lib.data.log_messages import (
    REPLY_FIELDS,
    RESPONSE,
    USER_TEXT,
    check_names,
    exchange_keys,
    find_format,
    message_fields,
    message_list,
    pairs_of_lines,
    read_exchanges,
    read_record,
)
from lib.data.log_nested import listed_by_push_ids, nested_records, nested_shape
from lib.data.log_parts import (
    DIALOG,
    SYNONYMS,
    TIME,
    as_script,
    dicts,
    first_name,
    first_text,
    first_value,
    from_json,
    has_path,
    names_a_time,
)
from lib.data.log_shapes import SHAPES, Shape
from lib.data.log_tables import (
    MAX_VERSIONS,
    REMARK,
    Columns,
    exchange_columns,
    holds_talk,
    read_exchange_rows,
    read_utterance_rows,
    read_wide_rows,
    wide_columns,
    words_differ,
)

__all__ = ["read_dialogs", "speaker_role"]
NUMBERED_DIALOG = re.compile(
    r"(?:(?:d|dlg|dia|dialog|dialogue|c|conv|conversation|chat|session|thread|ticket)[ _-]?)?\d+",
    re.I,
)
FIELD_NAMES = {  # of a record, or of parts of a corpus: none of these is the id of a dialog
    "messages",
    "conversations",
    "turns",
    "examples",
    "chosen",
    "rejected",
    "train",
    "valid",
    "dev",
    "test",
    *" ".join([*WORDS["synonyms"].values(), *WORDS["fields"].values()]).split(),
}


# Names of lists of exchanges: those of one dialog, and those of examples, each of its own.
OF_ONE_DIALOG = {*DIALOG, *WORDS["lists"]["of_one_dialog"].split()}
OF_EXAMPLES = set(WORDS["lists"]["of_examples"].split())
REQUEST_KINDS = {
    *("langfuse", "langsmith", "opentelemetry", "braintrust", "weave", "mlflow"),
    *("openai_responses", "gemini_requests", "azure_gateway"),
}
# Where servers of some platforms list the messages of a page, each of which names its dialog.
PAGES = ("messages", "data", "results", "payload", "logs")
LISTED_KINDS = {"twilio", "crisp", "freshchat", "chatwoot", "hubspot", "kore", "watson"}
# What may stand between the utterances of a context in one text, or be a word of them.
SEPARATORS = ("EOS", " | ")


class LogFormat(NamedTuple):
    """A way of keeping dialogs: a record of it has all the fields of its signature.

    Attributes:
        kind: what the option KIND calls it.
        name: what the report calls it.
        signature: paths of fields, as `has_path` takes them.
        read: from the records and the source to dialogs.
    """

    kind: str
    name: str
    signature: tuple[str, ...]
    read: Callable[[list[dict], Source], list[Dialog]]


class TextFormat(NamedTuple):
    """The same for plain text, with a signature that looks at the text."""

    kind: str
    name: str
    signature: Callable[[str], bool]
    read: Callable[[str, Source], list[Dialog]]


class EachRecord(NamedTuple):
    """A reader of records, from one of a single record, whose number is the id that it lacks."""

    read: Callable[[dict, Source], list[Dialog]]
    join: Callable[[list[Dialog]], list[Dialog]] = list
    by_record: bool = True

    def __call__(self, records: list[dict], source: Source) -> list[Dialog]:
        """The dialogs of all records, joined where several records are of one."""
        dialogs = []
        for number, record in enumerate(records, start=1):
            for dialog in self.read(record, source):
                dialog.id = dialog.id or str(number)
                dialogs.append(dialog)
        return self.join(dialogs)


# fmt: off
TEXT_FORMATS = [  # in the order in which signatures are tried
    TextFormat("lines", "DailyDialog", texts.is_dailydialog, texts.read_dailydialog),
    TextFormat("lines", "exchanges with tabs", texts.is_exchange_lines, texts.read_exchange_lines),
    TextFormat("whatsapp", "WhatsApp export", texts.is_whatsapp, texts.read_whatsapp),
    TextFormat("imessage", "iMessage export", texts.is_imessage, texts.read_imessage),
    TextFormat("discord", "DiscordChatExporter (text), a channel",
               texts.is_discord, texts.read_discord_text),
    TextFormat("subtitles", "SubRip or WebVTT subtitles", texts.is_subtitles, texts.read_subtitles),
    TextFormat("named_times", "transcript with names and times (Otter, Teams, Rev)",
               texts.has_named_times, texts.read_named_times),
    TextFormat("irc", "IRC or chat log", texts.is_irc, texts.read_irc),
    TextFormat("aider", "Aider history", texts.is_aider, texts.read_aider),
    TextFormat("markdown", "Markdown, speakers as headings", texts.is_headed, texts.read_headed),
    TextFormat("transcript", "transcript", bool, texts.read_transcript),
]
FORMATS = [  # in the order in which signatures are tried
    LogFormat("chatgpt", "ChatGPT export, the current branches",
              ("mapping", "current_node|mapping{}.message.author.role"),
              EachRecord(assistants.read_chatgpt)),
    LogFormat("open_webui", "Open WebUI export",
              ("chat.history.messages",), EachRecord(assistants.read_open_webui)),
    LogFormat("open_webui", "Open WebUI feedback",
              ("snapshot.chat.chat.history.messages",),
              assistants.read_open_webui_feedback),
    LogFormat("gemini", "Gemini API",
              ("contents[].parts|history[].parts",), assistants.read_gemini),
    LogFormat("gemini_requests", "Gemini API, requests with replies (Vertex AI, batch)",
              ("request.contents[].parts|full_request.contents[].parts"
               "|request_payload[].contents[].parts",), assistants.read_gemini),
    LogFormat("gemini", "Google Takeout, activity of Gemini",
              ("safeHtmlItem[].html", "title", "time"), assistants.read_gemini_activity),
    LogFormat("character_ai", "Character.AI turns",
              ("turns[].candidates[].raw_content", "turns[].author"),
              EachRecord(assistants.read_character_turns)),
    LogFormat("fastchat", "FastChat server log",
              ("state.messages", "state.roles", "type"), assistants.read_fastchat),
    LogFormat("lm_studio", "LM Studio chat",
              ("messages[].versions[].role",), EachRecord(assistants.read_lm_studio)),
    LogFormat("openai_responses", "OpenAI Responses",
              ("output[].type", "input", "object"), assistants.read_openai_responses),
    LogFormat("openai_responses", "OpenAI Responses, with the input beside each",
              ("input", "response.output[].type", "response.object"),
              assistants.read_logged_responses),
    LogFormat("openai_responses", "OpenAI Responses, with the requests",
              ("request.input", "response.output[].type", "response.object=response",
               "request.previous_response_id|response.previous_response_id=resp*"),
              assistants.read_logged_responses),
    LogFormat("replies", "replies of an interface, without the requests",
              ("object=response", "output[].type"), assistants.read_replies_alone),
    LogFormat("anthropic_batch", "Anthropic Message Batches",
              ("custom_id", "result.type"), assistants.read_anthropic_batch),
    LogFormat("anthropic_batch", "Anthropic Message Batches, the requests",
              ("requests[].custom_id", "requests[].params.messages"),
              EachRecord(assistants.read_anthropic_requests)),
    LogFormat("anthropic_batch", "Anthropic Message Batches, the requests",
              ("custom_id", "params.messages"), EachRecord(assistants.read_anthropic_requests)),
    LogFormat("langchain", "LangChain messages",
              ("type=human,ai,system,tool,function", "data.content"),
              assistants.read_langchain_list),
    LogFormat("openai_items", "items of an OpenAI conversation",
              ("object=list", "data[].type=message",
               "data[].content[].type=input_text,output_text"),
              EachRecord(assistants.read_openai_items)),
    LogFormat("codex", "Codex session",
              ("payload.type", "type=response_item,session_meta"), assistants.read_codex),
    LogFormat("codex", "Codex session, old form", ("record_type=state",), assistants.read_codex),
    LogFormat("copilot_chat", "GitHub Copilot chat",
              ("requesterUsername", "responderUsername", "requests"),
              EachRecord(assistants.read_copilot)),
    LogFormat("copilot_chat", "GitHub Copilot chat, the log of a session",
              ("kind=0", "v.requests", "v.responderUsername|v.sessionId"),
              assistants.read_copilot_log),
    LogFormat("cline", "Cline task",
              ("role=user,assistant", "content[].text=<task>*"), assistants.read_cline),
    LogFormat("autogen", "AutoGen, the state of a team",
              ("agent_states", "type=TeamState"), EachRecord(assistants.read_autogen)),
    LogFormat("openai_batch", "OpenAI Batch",
              ("custom_id", "response.body|error.code"), assistants.read_openai_batch),
    LogFormat("openai_batch", "OpenAI Batch, the requests",
              ("custom_id", "body.messages|body.input"),
              assistants.read_openai_batch_requests),
    LogFormat("arena", "Chatbot Arena, two dialogs a row and who was preferred",
              ("conversation_a|messages_a", "conversation_b|messages_b"),
              EachRecord(comparisons.read_arena, comparisons.join_judges)),
    LogFormat("arena", "FastChat server log, two dialogs a row and the vote",
              ("states[].messages", "states[].roles", "type"), comparisons.read_arena_votes),
    LogFormat("arena", "Chatbot Arena, two dialogs a row and who was preferred",
              (f"prompt|{'|'.join(USER_TEXT)}", "response_a", "response_b"),
              EachRecord(comparisons.read_arena_table, comparisons.join_judges)),
    LogFormat("oasst", "OpenAssistant trees, a dialog per branch",
              ("prompt.replies", "message_tree_id"), EachRecord(assistants.read_oasst_tree)),
    LogFormat("oasst", "OpenAssistant messages with replies, a dialog per branch",
              ("message_id", "text", "role=prompter,assistant", "replies[].message_id"),
              EachRecord(assistants.read_oasst_message)),
    LogFormat("oasst", "OpenAssistant messages, a dialog per branch",
              ("message_tree_id", "message_id", "text", "role"), assistants.read_oasst_rows),
    LogFormat("preference", "preferences: two replies to a context",
              ("chosen", "rejected"), EachRecord(comparisons.read_preference)),
    LogFormat("helpsteer", "HelpSteer, replies rated by people",
              ("prompt=str", "response=str", "helpfulness", "correctness", "verbosity"),
              EachRecord(comparisons.read_helpsteer)),
    LogFormat("preference", "replies that were liked or not",
              ("prompt", "completion", "label"), EachRecord(comparisons.read_kto)),
    LogFormat("completion", "prompts and completions (TRL)",
              ("prompt[].role", "completion[].role"), EachRecord(comparisons.read_completion)),
    LogFormat("preference", "preferences: two replies to a context",
              ("preferred_output", "non_preferred_output", "input.messages"),
              EachRecord(comparisons.read_openai_preference)),
    LogFormat("preference", "preferences: two replies to a context",
              ("context|prompt|history",
               "response1=str|response_0=str|response_1=str|human_ref_A=str",
               "overall_preference|better_response_id|labels|feedback1|preference_strength"),
              EachRecord(comparisons.read_reply_pair, comparisons.join_judges)),
    LogFormat("helpsteer", "HelpSteer3, replies that people edited",
              ("context[].role", "original_response=str",
               "edited_response=str|good_edited_response=str"),
              EachRecord(comparisons.read_edited_reply)),
    LogFormat("red_team", "attacks by a red team (HH)",
              ("transcript=str", "task_description", "red_team_member_id"),
              EachRecord(comparisons.read_red_team)),
    LogFormat("instructions", "two outputs for each instruction (AlpacaEval)",
              ("instruction=str", "output_1=str", "output_2=str"),
              EachRecord(comparisons.read_instruction_pair)),
    LogFormat("answers", "replies of several models to each prompt",
              ("prompt=str|instruction=str", "answers[].answer|completions[].response",
               "answers[].model|completions[].model"), EachRecord(comparisons.read_answers)),
    LogFormat("prodigy", "Prodigy choices", ("options[].text", "_task_hash"),
              EachRecord(comparisons.read_prodigy_choices)),
    LogFormat("prism", "PRISM, a dialog per branch",
              ("conversation_history[].if_chosen", "conversation_history[].role"),
              EachRecord(comparisons.read_prism)),
    LogFormat("prism", "PRISM, a row per reply",
              ("user_prompt", "model_response", "if_chosen", "conversation_id"),
              comparisons.read_prism_rows),
    LogFormat("instructions", "instructions and outputs (AlpacaEval, Alpaca, Dolly)",
              ("instruction=str", "output=str|response=str"),
              EachRecord(assistants.read_instruction)),
    LogFormat("instructions", "prompts and responses with a history of pairs (ChatGLM)",
              ("prompt=str|query=str", "response=str", "history[].[]=str"),
              assistants.read_instruction_rows),
    LogFormat("cohere", "Cohere chat",
              ("chat_history", "message", "text"), assistants.read_cohere_rows),
    LogFormat("cohere", "Cohere requests with replies",
              ("request.chat_history|chat_history", "request.message|message", "response.text"),
              assistants.read_cohere_requests),
    LogFormat("text_generation_webui", "text-generation-webui chat",
              ("internal[]", "visible[]"), EachRecord(assistants.read_text_generation_webui)),
    LogFormat("mt_bench", "MT-bench answers",
              ("question_id", "choices[].turns"), EachRecord(assistants.read_mt_bench)),
    LogFormat("telegram", "Telegram export, all chats",
              ("chats.list",), EachRecord(chats.read_telegram_full)),
    LogFormat("telegram", "Telegram export of a chat",
              ("messages[].from_id", "name|id", "type"), EachRecord(chats.read_telegram)),
    LogFormat("facebook", "Messenger or Instagram chat",
              ("participants[].name", "messages[].sender_name", "messages[].timestamp_ms"),
              EachRecord(chats.read_facebook)),
    LogFormat("matrix", "Matrix room",
              ("messages[].event_id|chunk[].event_id",
               "messages[].content.msgtype|chunk[].content.msgtype"),
              EachRecord(chats.read_matrix)),
    LogFormat("wechat", "WeChat chat (WeChatMsg, MemoTrace)",
              ("StrContent", "IsSender", "StrTime"), chats.read_wechat),
    LogFormat("google_chat", "Google Chat",
              ("messages[].creator.user_type", "messages[].topic_id"),
              EachRecord(chats.read_google_chat)),
    LogFormat("mattermost", "Mattermost export, a dialog per channel, thread or people",
              ("post.message|direct_post.message", "post.user|direct_post.user"),
              chats.read_mattermost),
    LogFormat("zulip", "Zulip export, a dialog per topic",
              ("zerver_message[].sender", "zerver_message[].recipient"),
              EachRecord(chats.read_zulip)),
    LogFormat("zulip", "Zulip messages, a dialog per topic",
              ("messages[].sender_full_name", "messages[].display_recipient"),
              EachRecord(chats.read_zulip_messages)),
    LogFormat("slack", "Slack export, threads as dialogs",
              ("type=message", "ts", "text", "user|bot_id|username"), chats.read_slack),
    LogFormat("slack", "Slack channel, threads as dialogs",
              ("messages[].ts", "messages[].type=message", "messages[].user|messages[].bot_id"),
              EachRecord(chats.read_slack_channel)),
    LogFormat("discord", "DiscordChatExporter, a channel",
              ("guild", "messages[].author"), EachRecord(chats.read_discord)),
    LogFormat("discord", "Discord messages, a dialog per channel",
              ("channel_id", "author.username", "content=str", "timestamp", "embeds|mentions|type"),
              chats.read_discord_messages),
    LogFormat("discord", "Discord data package",
              ("ID", "Timestamp", "Contents", "Attachments"), chats.refuse_discord_package),
    LogFormat("discord", "DiscordChatExporter (CSV), a channel",
              ("AuthorID", "Author", "Date", "Content"), chats.read_discord_rows),
    LogFormat("sillytavern", "SillyTavern chat",
              ("mes", "is_user"), chats.read_sillytavern),
    LogFormat("rasa", "Rasa trackers, a dialog per session",
              ("sender_id", "events[].event"), EachRecord(platforms.read_rasa)),
    LogFormat("rasa", "Rasa events, a dialog per session",
              ("sender_id|conversation_id", "type_name", "data=str"), platforms.read_rasa_rows),
    LogFormat("rasa", "Rasa events, a dialog per session",
              ("sender_id", "event=user,bot", "timestamp"), platforms.read_rasa_events),
    LogFormat("dialogflow", "Dialogflow CX conversations",
              ("interactions[].request|interactions[].requestUtterances",),
              EachRecord(platforms.read_dialogflow_conversation)),
    LogFormat("dialogflow", "Dialogflow CX conversations",
              ("conversations[].interactions",), EachRecord(platforms.read_dialogflow)),
    LogFormat("dialogflow", "Dialogflow CX in BigQuery",
              ("conversation_name", "turn_position"), platforms.read_dialogflow_rows),
    LogFormat("dialogflow", "Dialogflow ES in Cloud Logging",
              ("textPayload=Dialogflow Response*", "timestamp"), platforms.read_dialogflow_es_log),
    LogFormat("dialogflow", "Dialogflow CX in Cloud Logging",
              ("jsonPayload.queryResult.responseMessages", "timestamp"),
              platforms.read_dialogflow_log),
    LogFormat("botpress", "Botpress messages (version 12)",
              ("conversationId", "sentOn", "payload.type"), platforms.read_botpress_messages),
    LogFormat("bot_framework", "Bot Framework transcript",
              ("type", "from.id", "conversation.id"), platforms.read_bot_framework),
    LogFormat("bot_framework", "Bot Framework transcript",
              ("transcript[].type", "transcript[].from"),
              EachRecord(platforms.read_bot_framework_wrapped)),
    LogFormat("bot_framework", "Bot Framework transcript",
              ("activities[].type", "activities[].from"),
              EachRecord(platforms.read_bot_framework_wrapped)),
    LogFormat("copilot_studio", "Copilot Studio transcripts",
              ("content.activities[].type|Content.activities[].type",),
              EachRecord(platforms.read_copilot_studio)),
    LogFormat("copilot_studio", "Copilot Studio sessions",
              ("ChatTranscript=str", "SessionOutcome"), EachRecord(platforms.read_pva_session)),
    LogFormat("intercom", "Intercom conversations",
              ("source|conversation_message.body", "conversation_parts"),
              platforms.read_intercom_rows),
    LogFormat("zendesk", "Zendesk chats",
              ("chats[].history|docs{}.history",), EachRecord(platforms.read_zendesk_chats)),
    LogFormat("zendesk", "Zendesk chats",
              ("history[].type=chat.msg", "history[].msg"),
              EachRecord(platforms.read_zendesk_chats)),
    LogFormat("zendesk", "Zendesk tickets with their comments",
              ("tickets[].comments[].author_id",), platforms.read_zendesk_tickets),
    LogFormat("zendesk", "Zendesk tickets with their comments",
              ("comments[].author_id", "requester_id|requester"), platforms.read_zendesk_tickets),
    LogFormat("twilio", "Twilio messages, a dialog per number of a user",
              ("messages[].sid", "messages[].to",
               "messages[].direction=inbound,outbound-api,outbound-reply"),
              EachRecord(platforms.read_twilio_sms)),
    LogFormat("twilio", "Twilio messages, a dialog per number of a user",
              ("sid|Sid", "from|From", "to|To", "body|Body",
               "direction=inbound,outbound-api,outbound-reply"
               "|Direction=inbound,outbound-api,outbound-reply"),
              platforms.read_twilio_sms_rows),
    LogFormat("genesys", "Genesys transcripts",
              ("transcripts[].phrases[].participantPurpose",), EachRecord(platforms.read_genesys)),
    LogFormat("dialogflow", "Dialogflow ES answers",
              ("queryResult.queryText",), platforms.read_dialogflow_es),
    LogFormat("langfuse", "Langfuse traces with their observations",
              ("observations[].traceId", "trace.id|timestamp"), traces.read_langfuse),
    LogFormat("langfuse", "Langfuse traces",
              ("sessionId", "input", "output"), traces.read_langfuse),
    LogFormat("langfuse", "Langfuse traces",
              ("input", "output", "scores[].source=API,ANNOTATION,EVAL"), traces.read_langfuse),
    LogFormat("langfuse", "Langfuse traces",
              ("id", "timestamp", "name", "input", "output", "tags", "userId|htmlPath"),
              traces.read_langfuse),
    LogFormat("langfuse", "Langfuse observations",
              ("traceId", "input", "output", "type"), traces.read_langfuse),
    LogFormat("langfuse", "Langfuse observations",
              ("trace_id", "input", "output", "type", "parent_observation_id|project_id"),
              traces.read_langfuse),
    LogFormat("langsmith", "LangSmith runs",
              ("run_type", "inputs", "outputs"), traces.read_langsmith),
    LogFormat("opentelemetry", "OpenTelemetry spans",
              ("resourceSpans",), traces.read_otel),
    LogFormat("opentelemetry", "OpenTelemetry logs of models",
              ("resourceLogs",), traces.read_otel_logs),
    LogFormat("opentelemetry", "OpenTelemetry spans, one a row",
              ("|".join(traces.SPAN_SIGNATURES),), traces.read_span_rows),
    LogFormat("braintrust", "Braintrust spans",
              ("root_span_id", "span_attributes", "input", "output"), traces.read_braintrust),
    LogFormat("weave", "Weave calls",
              ("op_name=weave:*|op_name=openai.*|op_name=anthropic.*", "trace_id", "inputs",
               "started_at"), traces.read_weave),
    LogFormat("mlflow", "MLflow traces",
              ("info.trace_id|info.request_id", "data.spans[].attributes"), traces.read_mlflow),
    LogFormat("mlflow", "MLflow traces, one a row",
              ("trace_id|request_id", "request", "response", "trace_metadata|request_metadata",
               "request_time|timestamp_ms"), traces.read_mlflow_rows),
    LogFormat("azure_gateway", "Azure API Management, logs of models",
              ("CorrelationId", "RequestMessages|ResponseMessages"), traces.read_azure_gateway),
    LogFormat("inspect", "Inspect log",
              ("eval.model", "samples[].messages"), EachRecord(evaluations.read_inspect)),
    LogFormat("inspect", "Inspect log (.eval)",
              ("epoch", "messages[].role", "target"), EachRecord(evaluations.read_inspect_sample)),
    LogFormat("openai_evals", "OpenAI evals, sampled replies",
              ("sample_id", "event_id", "data.prompt"), evaluations.read_openai_evals),
    LogFormat("deepeval", "DeepEval test run",
              ("testCases[].actualOutput|conversationalTestCases[].turns",),
              EachRecord(evaluations.read_deepeval_run)),
    LogFormat("deepeval", "DeepEval test cases",
              ("input=str", "actual_output=str"), EachRecord(evaluations.read_deepeval_case)),
    LogFormat("ragas", "Ragas, questions and answers",
              ("user_input=str", "response=str", "reference|retrieved_contexts"),
              EachRecord(evaluations.read_ragas)),
    LogFormat("lm_eval", "lm-evaluation-harness samples",
              ("doc_id", "arguments", "resps[]"), evaluations.read_lm_eval),
    LogFormat("helm", "HELM, replies to the instances of a scenario",
              ("adapter_spec", "request_states[].result"), EachRecord(evaluations.read_helm)),
    LogFormat("promptfoo", "promptfoo results",
              ("results.results[].prompt",), EachRecord(evaluations.read_promptfoo)),
    LogFormat("promptfoo", "promptfoo results, one a row",
              ("provider", "prompt.raw", "response.output", "testIdx|promptIdx"),
              evaluations.read_promptfoo_rows),
    LogFormat("promptfoo", "promptfoo table",
              ("head.prompts[]", "body[].outputs[].text", "body[].vars"),
              EachRecord(evaluations.read_promptfoo_table)),
    LogFormat("promptfoo", "promptfoo table (CSV)",
              ("Status=PASS,FAIL,ERROR", "Score", "Grader Reason", "Comment"),
              evaluations.read_promptfoo_columns),
    LogFormat("abcd", "ABCD", ("original", "delexed"), EachRecord(corpora.read_abcd)),
    LogFormat("convokit", "ConvoKit utterances",
              ("speaker", "text", "conversation_id", "reply-to|reply_to|timestamp"),
              corpora.read_convokit),
    LogFormat("convokit", "ConvoKit utterances, old form",
              ("user", "text", "root"), corpora.read_convokit),
    LogFormat("blended_skill_talk", "Blended Skill Talk",
              ("dialog", "guided_turker_utterance"), EachRecord(corpora.read_blended_skill_talk)),
    LogFormat("blended_skill_talk", "Blended Skill Talk (hub)",
              ("free_messages", "guided_messages"),
              EachRecord(corpora.read_blended_skill_talk_hub)),
    LogFormat("empathetic_dialogues", "EmpatheticDialogues",
              ("conv_id", "utterance_idx", "speaker_idx", "utterance"), corpora.read_empathetic),
    LogFormat("personachat", "Persona-Chat (hub)",
              ("conv_id", "utterance_idx", "history[]=str", "candidates[]=str"),
              corpora.read_personachat_hub),
    LogFormat("daily_dialog", "DailyDialog (hub)",
              ("dialog[]=str", "act", "emotion"), EachRecord(corpora.read_text_list)),
    LogFormat("daily_dialog", "DailyDialog (hub)",
              ("utterances[]=str", "acts", "emotions"), EachRecord(corpora.read_text_list)),
    LogFormat("daily_dialog", "DailyDialog (ParlAI)",
              ("dialogue[].text=str", "dialogue[].emotion", "dialogue[].act", "topic"),
              EachRecord(corpora.read_daily_dialog)),
    LogFormat("multiwoz", "MultiWOZ, Schema-Guided Dialogue (hub)",
              ("dialogue_id", "turns.speaker[]", "turns.utterance[]=str"),
              EachRecord(corpora.read_column_turns)),
    LogFormat("lima", "LIMA",
              ("conversations[]=str", "source"), EachRecord(corpora.read_text_list)),
    LogFormat("ultrachat", "UltraChat", ("data[]=str", "id"), EachRecord(corpora.read_text_list)),
    LogFormat("soda", "SODA",
              ("dialogue[]=str", "speakers[]=str|speaker[]=str"), EachRecord(corpora.read_soda)),
    LogFormat("topical_chat", "Topical-Chat",
              ("article_url", "content[].agent"), EachRecord(corpora.read_topical_chat)),
    LogFormat("dstc9", "DSTC9 track 1, with the replies of labels.json",
              ("messages[].speaker=U,S", "messages[].text"), corpora.read_dstc9),
    LogFormat("dstc7", "DSTC7 track 1, with the correct replies",
              ("messages-so-far[].utterance", "options-for-correct-answers[].utterance"),
              EachRecord(corpora.read_dstc7)),
    LogFormat("switchboard", "Switchboard Dialog Act Corpus",
              ("conversation_no", "caller", "utterance_index", "subutterance_index", "text"),
              corpora.read_switchboard),
    LogFormat("argilla", "Argilla, replies rated by people",
              ("fields", "responses", "suggestions"), EachRecord(corpora.read_argilla)),
    LogFormat("argilla", "Argilla, a data set with replies rated by people",
              ("_server_id", "status", "id"), EachRecord(corpora.read_argilla_columns)),
    LogFormat("reddit", "Reddit comments, by what they answer",
              ("body", "author", "link_id", "parent_id"), corpora.read_reddit),
    LogFormat("label_studio", "Label Studio, dialogs rated by annotators",
              ("data", "annotations[].result|completions[].result"),
              EachRecord(corpora.read_label_studio)),
    *(LogFormat(shape.kind, shape.name, shape.signature, shape) for shape in SHAPES),
    LogFormat("request", "LiteLLM, logs of requests without their words",
              ("request_id", "call_type", "spend", "startTime"), traces.read_litellm_without_words),
]
# fmt: on


def read_dialogs(value: Any, source: Source) -> list[Dialog] | None:
    """The dialogs in what a file holds; None for a table with one row per reply.

    Raises:
        UnknownFormat: nothing of the kind, with examples of formats; or several readings.
    """
    kind = source.report.options.kind
    if isinstance(value, str):
        dialogs = _read_text(value, source, kind)
        if dialogs:
            return dialogs
        raise _unknown(value, kind)
    value = listed_by_push_ids(value)
    rows = rows_of_dumped_model(logged_events(records(value)))
    rows = corpora.label_studio_tasks(rows)
    log_format = find_log_format(rows, kind)
    if not log_format:
        log_format, rows = on_a_page(rows, kind)
    if log_format:
        if isinstance(value, pd.DataFrame):
            rows = [without_empty_cells(row) for row in rows]
        return _read_records(log_format, rows, source)
    return _read_generic(unfold_all(rows), value, source)


def without_empty_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table, in which an empty cell holds nothing, and no empty text."""
    return {name: None if cell == "" else cell for name, cell in row.items()}


def logged_events(rows: list[dict]) -> list[dict]:
    """The records that events of CloudWatch hold as JSON; other rows are unchanged.

    A query of Insights gives them as a table, with "@" before its own columns.
    """
    events = []
    for row in rows:
        own = {name.removeprefix("@"): cell for name, cell in row.items()}
        in_table = {"@message", "@timestamp"} <= set(row)
        if not in_table and not {"message", "timestamp", "ingestionTime"} <= set(row):
            return rows
        record = from_json(own["message"])
        if not isinstance(record, dict):
            return rows
        events.append({"timestamp": own["timestamp"], **record})
    return events


def rows_of_dumped_model(rows: list[dict]) -> list[dict]:
    """The rows of the model that holds messages, of a dump of Django; other rows are unchanged.

    Raises:
        UnknownFormat: where several models do, or none.
    """
    if not rows or any(set(row) != {"model", "pk", "fields"} for row in rows):
        return rows
    models: dict[str, list[dict]] = {}
    for row in rows:
        fields = {"id": row.get("pk"), **row["fields"]}
        models.setdefault(row["model"], []).append(fields)
    talk = []
    for name, of_model in models.items():
        columns = Columns(of_model)
        sides = exchange_keys(of_model[0])
        if sides or (columns.text and columns.speaker):
            talk.append(name)
    if len(talk) != 1:
        raise UnknownFormat(
            f"has the models {', '.join(models)} of a dump of Django: which holds the messages",
            fix="dump this one alone: manage.py dumpdata app.Model",
        )
    return models[talk[0]]


def find_log_format(rows: list[dict], kind: str | None = None) -> LogFormat | None:
    """The first format, of this kind if one is named, whose signature a record has."""
    names = set().union(*rows[:50])
    for log_format in FORMATS:
        if kind not in (None, log_format.kind) or not begins_in(names, log_format):
            continue
        if any(matches(row, log_format.signature) for row in rows[:50]):
            return log_format
    return None


def on_a_page(
    rows: list[dict], kind: str | None = None
) -> tuple[LogFormat | None, list[dict]]:
    """The format of messages that are listed without the page on which a server gives them.

    Then the page is put around them.
    """
    for name in PAGES:
        page = {name: rows}
        log_format = find_log_format([page], kind)
        if log_format and log_format.kind in LISTED_KINDS:
            return log_format, [page]
    return None, rows


@cache
def spellings_of_formats() -> dict[str, str]:
    """The names of fields in signatures and shapes, by the same in small letters."""
    spellings = {}
    for log_format in FORMATS:
        paths = list(log_format.signature)
        if isinstance(log_format.read, Shape):
            paths += [
                path for path in vars(log_format.read).values() if type(path) is str
            ]
        for name in re.findall(r"[A-Za-z_][\w-]*", " ".join(paths)):
            spellings.setdefault(name.lower(), name)
    return spellings


def request_kind(value: Any) -> str | None:
    """The kind of a format whose records are requests, each with the talk so far; None for others.

    These may stand in one file each, and then tell only together what was said.
    """
    if not isinstance(value, dict | list):
        return None
    log_format = find_log_format(records(value))
    if log_format is None:
        return None
    has_input = bool(getattr(log_format.read, "input", ""))
    return log_format.kind if has_input or log_format.kind in REQUEST_KINDS else None


def _read_generic(rows: list[dict], value: Any, source: Source) -> list[Dialog] | None:
    """The dialogs in records of no known format, by what their fields mean; None for replies."""
    kind = source.report.options.kind
    columns = source.report.options.columns
    rows = with_messages_of_cells(rows)
    if "system" not in columns and holds_prompts(rows):
        if isinstance(value, pd.DataFrame):
            raise UnknownFormat(
                "has a column 'system' that holds prompts, not names of systems",
                fix='name the column of the systems: COLUMNS="system=..."',
            )
        rows = [rename_keys(row, {"system": "system_prompt"}) for row in rows]
        source.guess("columns", "system", "holds prompts, and no names of systems")
    dialogs = _read_exchanges(rows, source)
    if dialogs:
        return dialogs
    beside_messages = any(message_fields(row) for row in rows[:50])
    if "response" in columns and beside_messages:
        rows = [with_one_reply(row, columns["response"]) for row in rows]
    by_reply = has_response(columns) or is_reply_table(rows)
    by_reply = by_reply and not beside_messages
    by_utterance = "speaker" in columns or "text" in columns
    if kind in (None, "table") and by_reply and not by_utterance:
        if "system" not in columns:
            check_system_column(rows)
        check_context(rows, columns)
        check_dialog(rows, columns)
        return None
    dialogs = _read_talk(rows, source)
    if dialogs:
        return dialogs
    if isinstance(value, pd.DataFrame) and kind in (None, "table"):
        return None  # whose columns may be mapped
    raise _unknown(value, kind)


def _read_exchanges(rows: list[dict], source: Source) -> list[Dialog]:
    """The dialogs in records that hold what a user and what the bot said; none of other records."""
    kind = source.report.options.kind
    columns = source.report.options.columns
    exchanges = rows
    if columns and not {"response", "context", "speaker", "text"} & set(columns):
        names = {name: column for column, name in columns.items()}
        exchanges = [rename_keys(row, names) for row in rows]
    is_exchange = exchanges is not rows or not columns
    if kind in (None, "exchanges") and is_exchange and exchange_columns(exchanges):
        dialogs = read_exchange_rows(exchanges, source)
        return _named("exchanges", "a row per exchange", dialogs, source)
    if kind in (None, "wide") and wide_columns(rows) and not columns:
        dialogs = join_rated_dialogs(read_wide_rows(rows, source), source)
        return _named("wide", "a row per dialog", dialogs, source)
    if kind in (None, "prompts") and prompts.prompt_column(rows) and not columns:
        dialogs = prompts.read_prompt_rows(rows, source)
        dialogs = histories.without_beginnings(dialogs, source)
        return _named("prompts", "prompts with replies", dialogs, source)
    return []


def _read_talk(rows: list[dict], source: Source) -> list[Dialog]:
    """The dialogs in records that are messages, or hold them; none of other records."""
    kind = source.report.options.kind
    columns = source.report.options.columns
    names = {name: column for column, name in columns.items()}
    if names:
        rows = [rename_keys(row, names) for row in rows]
    if kind in (None, "messages"):
        dialogs = _read_messages(rows, source)
        if dialogs:
            return dialogs
        dialogs = texts.read_transcript_cells(rows, source)
        if dialogs:
            dialogs = join_rated_dialogs(dialogs, source)
            return _named("messages", "a transcript per record", dialogs, source)
    if kind in (None, "utterances"):
        check_names(rows, Columns(rows).speaker if rows else None)
        dialogs = read_utterance_rows(rows, source)
        if dialogs:
            return _named("utterances", utterance_form(rows), dialogs, source)
    shape = nested_shape(rows) if kind in (None, "request") else None
    return _named(shape.kind, shape.name, shape(rows, source), source) if shape else []


def with_messages_of_cells(rows: list[dict]) -> list[dict]:
    """Rows with the fields of the message that a column holds as JSON in most of them."""
    for name, cell in (rows[0] if rows else {}).items():
        if not isinstance(cell, str) or cell[:1] != "{":
            continue
        with_message = []
        for row in rows:
            message = parse_list(str(row.get(name)))
            if isinstance(message, dict) and find_format([message]):
                with_message.append({**row, name: None, **message})
        if len(with_message) > len(rows) / 2:
            return with_message
    return rows


def with_one_reply(row: dict, reply: str) -> dict:
    """A row with messages and without the replies beside them but for the one of this name."""
    others = {name for name in row if snake_case(name) in REPLY_FIELDS} - {reply}
    return {name: cell for name, cell in row.items() if name not in others}


def holds_prompts(rows: list[dict]) -> bool:
    """Whether a column "system" holds prompts: sentences, and not names."""
    cells = [row.get("system") for row in rows[:200]]
    values = {cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()}
    return sum(map(is_sentence, values)) > len(values) / 2


def is_sentence(text: str) -> bool:
    """Whether a text is more than a name: of many words, or of several with a full stop."""
    words = len(text.split())
    return words > 7 or (words > 2 and text.endswith((".", "!")))


def begins_in(names: set[str], log_format: LogFormat) -> bool:
    """Whether the paths of a signature begin with these names of fields, which is quick to see."""
    for paths in log_format.signature:
        if not any(first_name(path) in names for path in paths.split("|")):
            return False
    return True


def matches(record: Mapping, signature: tuple[str, ...]) -> bool:
    """Whether a record has all the fields of a signature; "a|b" is one of both."""
    return all(has_one_path(record, paths) for paths in signature)


def has_one_path(record: Mapping, paths: str) -> bool:
    """Whether a record has one of the fields of "a|b"."""
    return any(has_path(record, path) for path in paths.split("|"))


def _read_records(
    log_format: LogFormat, rows: list[dict], source: Source
) -> list[Dialog]:
    """The dialogs of a format; readers of whole files get all rows, as headers are among them."""
    if getattr(log_format.read, "by_record", False):
        matching = [row for row in rows if matches(row, log_format.signature)]
        source.exclude("dialogs", "are in another shape", len(rows) - len(matching))
        rows = matching
    try:
        dialogs = log_format.read(rows, source)
    except UnknownFormat:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        problem = f"looks like {log_format.name}, but is not in its shape ({error!r})"
        raise UnknownFormat(
            problem, fix="export it again, or convert it to chat messages"
        ) from error
    return _named(log_format.kind, log_format.name, dialogs, source)


def _named(kind: str, name: str, dialogs: list[Dialog], source: Source) -> list[Dialog]:
    """The dialogs, with a word in the report on what they were taken for."""
    source.report.decide("kind", kind, name)
    return dialogs


def _read_text(text: str, source: Source, kind: str | None) -> list[Dialog]:
    for text_format in TEXT_FORMATS:
        if kind in (None, text_format.kind) and text_format.signature(text):
            dialogs = text_format.read(text, source)
            if dialogs:
                return _named(
                    text_format.kind, text_name(text_format, text), dialogs, source
                )
    return []


def text_name(text_format: TextFormat, text: str) -> str:
    """The name of a format; numbered lines are Persona-Chat's, `text:` is ParlAI's."""
    if text_format.read is texts.read_exchange_lines:
        return (
            "ParlAI (text)"
            if text.startswith("text:")
            else "Persona-Chat (numbered lines)"
        )
    return text_format.name


def _unknown(value: Any, kind: str | None) -> UnknownFormat:
    """The error for a file of no known format, or of another than the option KIND says."""
    if kind is None:
        fix = f"write it like this:\n{examples(value)}"
        return UnknownFormat("is no chat log that we know", fix=fix)
    kinds = ["messages", "utterances", "exchanges", "wide", "prompts", "table"]
    kinds += dict.fromkeys(log_format.kind for log_format in [*TEXT_FORMATS, *FORMATS])
    return UnknownFormat(
        f"is not of the kind {kind!r}", fix=f"KIND is one of {', '.join(kinds)}"
    )


def rename_keys(row: Mapping[str, Any], names: Mapping[str, str]) -> dict:
    """A row, and the messages in it, with new names for some of the keys."""
    renamed = {}
    for key, value in row.items():
        if key in names.values() and key not in names:
            continue  # another column has its name now
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            value = [rename_keys(item, names) for item in value]
        renamed[names.get(key, key)] = value
    named = "speaker" in names.values() and "role" not in names
    if named and speaker_role(str(renamed.get("speaker"))):
        renamed.pop("role", None)  # the column that was named tells it
    if names.get("none") == "time":  # the rows stand in their order
        for key in list(renamed):
            if snake_case(key) in TIME or names_a_time(key):
                del renamed[key]
    return renamed


def examples(value: Any) -> str:
    """Examples of what can be read, for what a file holds: a text, a table or JSON."""
    kind = "json"
    if isinstance(value, str):
        kind = "text"
    elif isinstance(value, pd.DataFrame):
        kind = "table"
    return "\nor\n".join(WORDS["examples"][kind])


def records(value: Any) -> list[dict]:
    """One mapping per dialog or row, whatever holds them together; none where they are others."""
    if isinstance(value, pd.DataFrame):
        value = evaluations.with_numbered_status(value)
        return value.loc[:, ~value.columns.duplicated()].to_dict("records")
    if isinstance(value, dict):
        if is_snapchat(value):
            return [{"id": name, "messages": item} for name, item in value.items()]
        if names_dialogs(value):
            rows = []
            for name, item in value.items():
                rows.append({"id": name, "dialog": name, "messages": item})
            return rows
        if holds_known_format(value):
            return [value]
        listed = listed_records(value)
        if listed:
            return listed
        if is_record(value):
            return [value]
        if all(isinstance(item, dict) for item in value.values()):
            # MultiWOZ: dialogs by their names.
            return [{"id": name, **item} for name, item in value.items()]
        with_messages = {
            name: item
            for name, item in value.items()
            if isinstance(item, dict) and message_fields(item)
        }
        if with_messages:
            # Chatbox: dialogs by their names, among settings; earlier ones in `threads`.
            rows = []
            for name, item in with_messages.items():
                rows.append({"id": name, **item})
                rows += [t for t in dicts(item.get("threads")) if message_fields(t)]
            return rows
        splits = [item for item in value.values() if isinstance(item, list)]
        nested = [] if any(splits) else nested_records(value)
        value = nested[0] if len(nested) == 1 else sum(splits, [])
    if pairs_of_lines(value):
        value = [value]
    rows = [named_record(item) for item in value]
    return rows if all(isinstance(row, dict) for row in rows) else []


def without_wrapping(value: Any, source: Source) -> Any:
    """What a file holds, without the name above a list of examples: each is a dialog of its own.

    Raises:
        UnknownFormat: for exchanges that may be examples or one dialog.
    """
    options = source.report.options
    if isinstance(value, dict) and set(value) == {"_default"}:  # TinyDB
        return list(value["_default"].values())
    if not isinstance(value, dict) or "messages" in options.columns:
        return value
    fields = message_fields(value)
    name = next(iter(fields), "")
    is_exchange = len(fields) == 1 and fields[name].read is read_exchanges
    if not is_exchange or snake_case(name) in OF_ONE_DIALOG:
        return value
    examples_of_file = message_list(value[name])
    if len(examples_of_file) < 2 or holds_known_format(value) or listed_records(value):
        return value
    sides = exchange_keys(examples_of_file[0]) or ()
    by_role = {speaker_role(side) for side in sides} & {"user", "assistant"}
    if options.kind == "table" or (snake_case(name) in OF_EXAMPLES and not by_role):
        source.report.decide("kind", "table", f"each item of {name!r} is an example")
        return examples_of_file
    raise UnknownFormat(
        f"has exchanges below {name!r}: of one dialog, or each of its own",
        fix=f'say which: COLUMNS="messages={name}" for one dialog, or KIND=table',
    )


def holds_known_format(value: Mapping[str, Any]) -> bool:
    """Whether a record has the signature of a known format."""
    return any(matches(value, log_format.signature) for log_format in FORMATS)


def names_dialogs(value: Mapping[str, Any]) -> bool:
    """Whether a mapping has a list of messages below each name, several of them of both sides.

    The names then are ids: none is that of a field. Numbers of dialogs are ids where nothing tells
    the sides, too.
    """
    n_filled = sum(item != [] for item in value.values())
    if n_filled < 2 or any(snake_case(name) in FIELD_NAMES for name in value):
        return False
    n_of_both = 0
    keys_of_talk: set[str] = set()
    keys_of_others: set[str] = set()  # of lists that hold a system prompt only
    for item in value.values():
        if item == []:
            continue
        messages = message_list(item) if isinstance(item, list) else []
        keys = {snake_case(key) for message in messages for key in message}
        if not messages or keys & {"messages", "conversations", *DIALOG}:
            return False
        result = read_record({"messages": item})
        if not result:
            keys_of_others |= keys
            continue
        keys_of_talk |= keys
        roles = {utterance.role for utterance in result[0].utterances}
        n_of_both += {"user", "assistant"} <= roles
    is_numbered = all(NUMBERED_DIALOG.fullmatch(name) for name in value)
    return (n_of_both > 1 or is_numbered) and keys_of_others <= keys_of_talk


def listed_records(value: Mapping[str, Any]) -> list[dict]:
    """The records of a known format in the only list of a mapping, as servers give pages of them.

    None where the list is of another kind, such as the messages of one dialog.
    """
    lists = [item for item in value.values() if isinstance(item, list) and item]
    if len(lists) != 1:
        return []
    rows = [row for row in map(named_record, lists[0]) if isinstance(row, dict)]
    if len(rows) == len(lists[0]) and any(map(holds_known_format, rows[:50])):
        return rows
    return []


def is_snapchat(value: Mapping[str, Any]) -> bool:
    """Whether a mapping has the chats of Snapchat by their names, as lists of messages."""
    chats_of_names = [item for item in value.values() if item]
    return bool(chats_of_names) and all(
        isinstance(item, list) and has_path({"messages": item}, "messages[].Media Type")
        for item in chats_of_names
    )


def named_record(item: Any) -> Any:
    """An item of a file as a record: a list is its messages; one below its name has it as id."""
    if isinstance(item, list):
        return {"messages": item}
    if isinstance(item, dict) and len(item) == 1:
        name, value = next(iter(item.items()))
        if isinstance(value, dict) and len(value) > 1:
            return {"id": name, **value}
    return item


def unfold_all(rows: list[dict]) -> list[dict]:
    """The rows, with those that hold several dialogs or replies replaced by these."""
    unfolded = []
    for row in rows:
        unfolded += unfold(row)
    return unfolded


def is_record(value: Any) -> bool:
    """Whether this is a dialog or a reply, and does not hold several."""
    return isinstance(value, dict) and (
        has_response(value) or bool(message_fields(value))
    )


def unfold(row: dict) -> list[dict]:
    """The dialogs, or replies to one context, in a list of a row, each with the rest of the row."""
    if message_fields(row):
        return [row]
    for name, cell in row.items():
        if isinstance(cell, list) and cell and is_record(cell[0]):
            rest = {key: value for key, value in row.items() if key != name}
            replies = has_response(cell[0])
            if replies and (exchange_keys(cell[0]) or not has_context(rest)):
                continue
            return [rest | item for item in cell if isinstance(item, dict)]
    return [row]


def has_context(row: Mapping[str, Any]) -> bool:
    """Whether a row has a column with what was said before a reply."""
    names = {"context", *SYNONYMS["context"].split()}
    return not names.isdisjoint(snake_case(name) for name in row)


def is_reply_table(rows: list[dict]) -> bool:
    """Whether rows have a reply, no list of messages, and no column with the roles of speakers."""
    if not rows or not has_response(rows[0]) or message_fields(rows[0]):
        return False
    replies = [rows[0].get(name) for name in rows[0] if snake_case(name) in RESPONSE]
    if replies and all(isinstance(reply, dict) for reply in replies):
        return False
    speaker = Columns(rows).speaker_by_values()
    return speaker is None


def check_system_column(rows: list[dict]) -> None:
    """Refuse a table whose column of systems may be one of speakers.

    That is unclear if the column names users as well as bots and no column holds the context.

    Raises:
        UnknownFormat: with both readings.
    """
    speakers = Columns(rows).system_of_speakers()
    if speakers and not has_context(rows[0]):
        names = {snake_case(name): name for name in rows[0]}
        text = first_value(names, RESPONSE)
        raise UnknownFormat(
            f"has a column {speakers!r} with users and bots: speakers, or systems that reply",
            fix=f'say which: COLUMNS="speaker={speakers} text={text}" or "system={speakers}"',
        )


def check_context(rows: list[dict], columns: Mapping[str, str]) -> None:
    """Refuse replies without what was said before, where another column may hold it.

    Raises:
        UnknownFormat: with the columns that may be it.
    """
    if not rows or "context" in columns:
        return
    if has_context(rows[0]):
        check_separators(rows)
        check_last_words(rows)
        return
    known = {"system", "dialog", "turn", "response", "reference", "fact", "agent"}
    taken = set(columns.values())
    for name in known:
        taken |= {name, *SYNONYMS.get(name, "").split()}
    talk = []
    for name in rows[0]:
        is_other = name not in taken and snake_case(name) not in taken
        if is_other and not REMARK.search(snake_case(name)) and holds_talk(rows, name):
            talk.append(name)
    if talk:
        raise UnknownFormat(
            "has replies, and no column that surely has what was said before; "
            f"it may be {' or '.join(map(repr, talk[:5]))}",
            fix=f'name it: COLUMNS="context={talk[0]}", or context=none for none',
        )


def check_separators(rows: list[dict]) -> None:
    """Refuse contexts in one text that marks divide into several utterances.

    Raises:
        UnknownFormat: with the mark.
    """
    for name in rows[0]:
        if snake_case(name) not in comparisons.CONTEXTS:
            continue
        cells = [row.get(name) for row in rows[:1000]]
        texts = [cell for cell in cells if isinstance(cell, str) and cell[:1] != "["]
        fix = (
            "write the utterances as a JSON list, or one on each line; or say that each is "
            f'one utterance: COLUMNS="context={name}"'
        )
        for mark in SEPARATORS:
            if sum(mark in text for text in texts) > len(texts) / 3:
                problem = f"has {mark!r} in {name!r}, which may part utterances"
                raise UnknownFormat(problem, fix=fix)


def check_last_words(rows: list[dict]) -> None:
    """Refuse replies with a context, and beside it words of the user that it does not end with.

    Raises:
        UnknownFormat: with both columns.
    """
    names = {snake_case(name): name for name in rows[0]}
    context = names.get("context") or names.get("history")
    user_text = first_value(names, USER_TEXT)
    if not context or not user_text or not holds_talk(rows, user_text):
        return
    apart = 0
    for row in rows:
        texts = row.get(context)
        texts = parse_list(texts) if isinstance(texts, str) else texts
        apart += words_differ(texts, row.get(user_text))
    if apart > len(rows) / 2:
        question = f"context={user_text}"
        if context == "context":  # then knowledge, such as a document
            question += " fact=context"
        raise UnknownFormat(
            f"has {context!r} and {user_text!r}, and the second is not within the first",
            fix=f'say what the reply answers: COLUMNS="{question}" or "context={context}"; '
            "or write both into one column",
        )


def check_dialog(rows: list[dict], columns: Mapping[str, str]) -> None:
    """Refuse replies without a column of dialogs, where another column may hold them.

    Raises:
        UnknownFormat: with the columns that may be it.
    """
    if not rows or "dialog" in columns:
        return
    found = Columns(rows)
    unclear = [] if found.dialog else found.recurring_ids()
    unclear = [name for name in unclear if name not in columns.values()]
    unclear = [name for name in unclear if not names_replies(rows, name)]
    turns = set(found.values(found.turn))
    if not found.dialog and not unclear and 1 < len(turns) < len(rows):
        raise UnknownFormat(
            f"has turns that begin again ({found.turn}), and no column with the dialogs",
            fix='name it: COLUMNS="dialog=...", or dialog=none for none',
        )
    if unclear:
        raise UnknownFormat(
            f"has no column that surely tells the dialogs; it may be {' or '.join(unclear)}",
            fix=f'name it: COLUMNS="dialog={unclear[0]}", or dialog=none for none',
        )


def names_replies(rows: list[dict], name: str) -> bool:
    """Whether a column is of replies: rows with one of its values have one reply and context."""
    names = {"context", *RESPONSE, *SYNONYMS["context"].split()}
    replies: dict[str, set] = {}
    for row in rows:
        reply = [str(row[key]) for key in row if snake_case(key) in names]
        replies.setdefault(str(row.get(name)), set()).add(tuple(reply))
    return all(len(of_value) == 1 for of_value in replies.values())


def has_response(row: Mapping[str, Any]) -> bool:
    """Whether a row has a column with the bot's reply."""
    return not RESPONSE.isdisjoint(snake_case(name) for name in row)


def _read_messages(rows: list[dict], source: Source) -> list[Dialog]:
    """One dialog per record, with a list of messages."""
    field = "messages" if "messages" in source.report.options.columns else None
    several = messages_of_several_dialogs(rows, field)
    if several:
        dialogs = read_utterance_rows(several, source)
        return _named("messages", "messages that name their dialogs", dialogs, source)
    if not any(read_record(record, field) for record in rows[:20]):
        return []
    results = [read_record(record, field) for record in rows]
    named = "system" in source.report.options.columns
    if not named and hold_system_names(rows):
        named = True
        source.guess("columns", "system='system'", "its few values are names")
    if named:
        for record, result in zip(rows, results, strict=True):
            if result:
                result[0].system = first_text(record, ["system"])
    dialogs = [result[0] for result in results if result]
    if len(dialogs) < len(rows) / 2:
        return []  # a few records have a list like messages, as of parts of an answer
    count_further_lists(rows, source)
    source.exclude("dialogs", "are in another shape", len(results) - len(dialogs))
    name = next(result[1] for result in results if result)
    mark_shared_contexts(
        dialogs, [r for r, result in zip(rows, results, strict=True) if result]
    )
    dialogs = join_rated_dialogs(dialogs, source)
    mark_prompts(dialogs)
    histories.check_windows(dialogs)
    dialogs = histories.without_beginnings(
        dialogs, source, by_session=any(map(names_session, rows))
    )
    return _named("messages", name, dialogs, source)


def names_session(record: Mapping[str, Any]) -> bool:
    """Whether a record has the id of a session, and none of its own."""
    about = {snake_case(name): value for name, value in record.items()}
    name = first_text(about, DIALOG)
    return name is not None and first_text(about, ["id"]) in (None, name)


def hold_system_names(rows: list[dict]) -> bool:
    """Whether "system" has a few values, all of one word, as prompts are not."""
    values = {row.get("system") for row in rows if isinstance(row.get("system"), str)}
    return 1 < len(values) <= MAX_VERSIONS and not any(" " in v for v in values)


def count_further_lists(rows: list[dict], source: Source) -> None:
    """Count the dialogs that records hold beside their messages, each below a name of its own."""
    for row in rows:
        read = message_fields(row)
        for name, cell in row.items():
            if name in read:
                continue
            further = [item for item in dicts(cell) if message_fields(item)]
            if further:
                reason = f"stand below {name!r}, which is not read"
                source.exclude("dialogs", reason, len(further))


def join_rated_dialogs(dialogs: list[Dialog], source: Source) -> list[Dialog]:
    """One dialog of several with the same words that different raters rated, with all ratings.

    Where no rater is named, those of one id are the same dialog.
    """
    keys = []
    for dialog in dialogs:
        words = [(utterance.speaker, utterance.text) for utterance in dialog.utterances]
        keys.append((dialog.system, *words))
    joined = join_rated(dialogs, keys)
    if len(joined) < len(dialogs):
        reason = "records of the same dialog are joined, and their ratings averaged"
        source.guess("columns", "a record per rater", reason)
    return joined


def mark_shared_contexts(dialogs: list[Dialog], rows: list[dict]) -> None:
    """Make what stands before replies of several systems context only: it is of none of them.

    So it is where the reply stands beside its context.
    """
    groups: dict[tuple, list[Dialog]] = {}
    for dialog, row in zip(dialogs, rows, strict=True):
        if dialog.system and has_context(row) and has_response(row):
            words = tuple((u.speaker, u.text) for u in dialog.utterances[:-1])
            groups.setdefault(words, []).append(dialog)
    for group in groups.values():
        if len({dialog.system for dialog in group}) > 1:
            for dialog in group:
                dialog.utterances[:-1] = as_script(dialog.utterances[:-1])


def mark_prompts(dialogs: list[Dialog]) -> None:
    """Make "system" no speaker where it stands only before all others, and two others speak."""
    others = set()
    first = []
    for dialog in dialogs:
        for number, utterance in enumerate(dialog.utterances):
            if utterance.speaker.lower() != "system":
                others.add(utterance.speaker)
            elif number == 0:
                first.append(utterance)
            else:
                others.add(utterance.speaker)
    names = {utterance.speaker for utterance in first}
    if len(others) > 1 and not names & others:
        for utterance in first:
            utterance.role = "system"


def messages_of_several_dialogs(rows: list[dict], field: str | None) -> list[dict]:
    """The messages of a file's only list, where they name several dialogs; else none."""
    if len(rows) != 1:
        return []
    fields = [field] if field else list(message_fields(rows[0]))
    if len(fields) != 1:
        return []
    messages = message_list(rows[0].get(fields[0]))
    columns = Columns(messages)
    if not messages or not columns.text or not columns.speaker:
        return []
    if len(set(columns.values(columns.dialog))) < 2:
        return []
    return messages


def utterance_form(rows: list[dict]) -> str:
    """What a table of utterances is called."""
    columns = Columns(rows[:1000])
    return f"one row per utterance ({columns.speaker}, {columns.text})"
