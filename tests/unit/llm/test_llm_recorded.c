/* Known answers of real services: the examples of their documentation and the peculiarities that users reported, in the
 * form of the wire. */
#include "protocol.h"

struct recorded {
    const char *what, *text, *wanted;
    int r;
    const char *code;
};

static void check_all(const struct llm_protocol *p, const struct recorded *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        print_message("    %s\n", cases[i].what);
        check_stream(p, cases[i].text, cases[i].wanted, cases[i].r, cases[i].code);
    }
}

/* ---- OpenAI chat completions ---- */

#define DATA(json) "data: " json "\n\n"
#define DONE "data: [DONE]\n\n"
#define DELTA(members) DATA("{\"choices\":[{\"index\":0,\"delta\":{" members "},\"finish_reason\":null}]}")
#define FINISH(why) DATA("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" why "\"}]}")
#define CALL(members) DELTA("\"role\":\"assistant\",\"tool_calls\":[{" members "}]")

static const struct recorded chat_cases[] = {
    { "OpenAI: usage null until a last chunk that has no choices",
      DATA(
          "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-4o-mini-2024-07-18\",\"system_fingerprint\":\"fp\",\"choices\":[{\"index\":0,"
          "\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null,\"obfuscation\":\"x\"}")
          DATA(
              "{\"model\":\"gpt-4o-mini-2024-07-18\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}")
              DATA(
                  "{\"model\":\"gpt-4o-mini-2024-07-18\",\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":null}")
                  DATA(
                      "{\"model\":\"gpt-4o-mini-2024-07-18\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1,\"total_tokens\":10,"
                      "\"completion_tokens_details\":{\"reasoning_tokens\":0}}}") DONE,
      "Hello|||stop|9+1|gpt-4o-mini-2024-07-18" },
    { "OpenAI: a refusal in parts",
      DELTA("\"role\":\"assistant\",\"content\":null,\"refusal\":\"I'm \"") DELTA("\"refusal\":\"sorry\"")
          FINISH("stop") DONE,
      "I'm sorry|||stop|-|-" },
    { "Azure: the filter's results come first, without a choice",
      DATA(
          "{\"id\":\"\",\"object\":\"\",\"created\":0,\"model\":\"\",\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{\"hate\":{\"filtered\":false,"
          "\"severity\":\"safe\"}}}],\"choices\":[]}")
          DATA(
              "{\"model\":\"gpt-4o\",\"choices\":[{\"content_filter_results\":{},\"delta\":{\"content\":\"a\"},\"finish_reason\":null,\"index\":0}]}")
              FINISH("content_filter") DONE,
      "a|||content_filter|-|gpt-4o" },
    { "DeepSeek: thoughts first, comments to keep the line open",
      ": keep-alive\n\n" DELTA("\"content\":null,\"reasoning_content\":\"Six times \"") ": keep-alive\n\n" DELTA(
          "\"content\":null,\"reasoning_content\":\"seven\"") DELTA("\"content\":\"42\",\"reasoning_content\":null")
          DATA(
              "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\",\"reasoning_content\":null},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,"
              "\"completion_tokens\":7,\"prompt_cache_hit_tokens\":0}}") DONE,
      "42|Six times seven||stop|5+7|-" },
    { "DeepSeek: out of resources in the middle",
      DELTA("\"content\":\"a\"") FINISH("insufficient_system_resource") DONE, "a|||-|-|-", -EIO, "LLM_ERROR" },
    { "OpenRouter: comments, then an error that stands beside a choice",
      ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" DELTA("\"role\":\"assistant\",\"content\":\"a\"") DATA(
          "{\"id\":\"gen-1\",\"provider\":\"x\",\"error\":{\"code\":\"server_error\",\"message\":\"Provider disconnected\"},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},"
          "\"finish_reason\":\"error\"}]}"),
      "a|||-|-|-", -EAGAIN, "LLM_ERROR" },
    { "OpenRouter: an error before anything, with its status",
      ": OPENROUTER PROCESSING\n\n" DATA("{\"error\":{\"message\":\"Rate limit exceeded\",\"code\":429}}"), "|||-|-|-",
      -EBUSY, "RATE_LIMIT" },
    { "OpenRouter: reasoning and its details are told once",
      DELTA(
          "\"content\":\"\",\"reasoning\":\"hm\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"hm\"}]")
          DELTA("\"content\":\"a\",\"reasoning\":null") FINISH("stop") DONE,
      "a|hm||stop|-|-" },
    { "Mistral: thoughts and text as chunks",
      DELTA(
          "\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"h\"}],\"closed\":false}]")
          DELTA(
              "\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"m\"}],\"closed\":true},{\"type\":\"text\",\"text\":\"a\"}]")
              DELTA("\"content\":\"b\"") DATA(
                  "{\"model\":\"magistral\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"model_length\"}],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3}}")
                  DONE,
      "ab|hm||length|2+3|magistral" },
    { "Groq: usage in a member of its own",
      DELTA("\"content\":\"a\"") DATA(
          "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"x_groq\":{\"id\":\"req_1\",\"usage\":{\"queue_time\":0.1,\"prompt_tokens\":4,\"completion_tokens\":6}}}")
          DONE,
      "a|||stop|4+6|-" },
    { "Perplexity: usage grows with every chunk, CR LF ends its lines",
      "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"message\":{\"content\":\"a\"},\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\r\n\r\n"
      "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"},\"message\":{\"content\":\"ab\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\r\n\r\n",
      "ab|||stop|1+2|-" },
    { "llama.cpp and LM Studio: timings, stats, and no usage asked for",
      DELTA("\"content\":\"a\"") DATA(
          "{\"choices\":[{\"finish_reason\":\"length\",\"index\":0,\"delta\":{}}],\"timings\":{\"prompt_n\":1,\"predicted_n\":1},\"stats\":{}}")
          DONE,
      "a|||length|-|-" },
    { "LM Studio: an error as an event of that name",
      "event: error\ndata: {\"error\":{\"message\":\"Model unloaded.\"}}\n\n", "|||-|-|-", -EIO, "LLM_ERROR" },
    { "vLLM: an error as an object of that name",
      DELTA("\"content\":\"a\"")
          DATA("{\"object\":\"error\",\"message\":\"out of memory\",\"type\":\"InternalServerError\",\"code\":500}"),
      "a|||-|-|-", -EAGAIN, "LLM_ERROR" },
    { "a byte order mark, no blank behind data:, several characters of four bytes",
      "\xef\xbb\xbf"
      "data:{\"choices\":[{\"delta\":{\"content\":\"\xf0\x9f\x98\x80\xe2\x82\xac\"}}]}\n\ndata:{\"choices\":[{\"delta\":{\"content\":\"\\ud83d\\ude00\"},\"finish_reason\":\"stop\"}]}\n\ndata:[DONE]\n\n",
      "\xf0\x9f\x98\x80\xe2\x82\xac\xf0\x9f\x98\x80|||stop|-|-" },
    { "a service that does not stream, asked to",
      " {\"choices\":[{\"message\":{\"content\":\"all\"},\"finish_reason\":\"stop\"}],\n \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}",
      "all|||stop|1+2|-" },
    { "an error of such a service", "{\"error\":{\"message\":\"no\"}}", "|||-|-|-", -EIO, "LLM_ERROR" },
    { "a web page", "\r\n<!doctype html><title>Login</title>", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID" },
    { "cut behind the reason of the end: all was said", DELTA("\"content\":\"a\"") FINISH("stop") "data: {\"cho",
      "a|||stop|-|-" },
};

static void chat_completions_as_many_services_stream_them(void **state)
{
    check_all(&llm_openai_chat, chat_cases, ARRAY_SIZE(chat_cases));
}

static void calls_as_many_services_stream_them(void **state)
{
    static const struct recorded cases[] = {
        { "Mistral: a call whole in one delta",
          CALL("\"id\":\"D681PevKs\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": 1}\"},\"index\":0")
              FINISH("tool_calls") DONE,
          "||D681PevKs f {\"a\": 1}|tool_calls|-|-" },
        { "Gemini: calls without index, one a chunk, and the end is stop",
          CALL(
              "\"extra_content\":{\"google\":{\"thought_signature\":\"x\"}},\"function\":{\"arguments\":\"{\\\"city\\\":\\\"Bern\\\"}\",\"name\":\"weather\"},\"id\":\"call_297140\",\"type\":\"function\"")
              CALL("\"function\":{\"arguments\":\"{}\",\"name\":\"time\"},\"id\":\"call_297141\",\"type\":\"function\"")
                  CALL("\"extra_content\":{\"google\":{\"thought_signature\":\"y\"}}") FINISH("stop") DONE,
          "||call_297140 weather {\"city\":\"Bern\"},call_297141 time {}|tool_calls|-|-" },
        { "Gemini: several calls that all say index 0",
          CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}")
              CALL("\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}")
                  FINISH("stop") DONE,
          "||a f {},b f {\"x\":1}|tool_calls|-|-" },
        { "Gemini by a proxy: neither id nor index in the parts that follow",
          CALL("\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\"}")
              CALL("\"id\":\"\",\"type\":\"\",\"function\":{\"arguments\":\":1}\"}") FINISH("tool_calls") DONE,
          "||a f {\"x\":1}|tool_calls|-|-" },
        { "local servers: two calls in one delta without ids",
          DELTA(
              "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},{\"function\":{\"name\":\"g\",\"arguments\":{\"b\":2}}}]")
              FINISH("stop") DONE,
          "||made f {},made g {\"b\":2}|tool_calls|-|-" },
        { "a name and an id repeated in every part",
          CALL("\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\"}") CALL(
              "\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\":1}\"}") FINISH("tool_calls") DONE,
          "||a f {\"x\":1}|tool_calls|-|-" },
    };

    check_all(&llm_openai_chat, cases, ARRAY_SIZE(cases));
}

/* ---- OpenAI Responses ---- */

#define EVENT(type, members) "event: " type "\ndata: {\"type\":\"" type "\",\"sequence_number\":1" members "}\n\n"
#define COMPLETED                                                                                                                    \
    EVENT(                                                                                                                           \
        "response.completed",                                                                                                        \
        ",\"response\":{\"status\":\"completed\",\"error\":null,\"incomplete_details\":null,\"model\":\"gpt-5-mini\",\"output\":[]," \
        "\"usage\":{\"input_tokens\":3,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":5}}")

static const struct recorded responses_cases[] = {
    { "the documented sequence of a text",
      EVENT("response.created", ",\"response\":{\"status\":\"in_progress\",\"error\":null,\"usage\":null}")
          EVENT("response.in_progress", ",\"response\":{}") EVENT(
              "response.output_item.added",
              ",\"output_index\":0,\"item\":{\"id\":\"msg_1\",\"type\":\"message\",\"status\":\"in_progress\",\"role\":\"assistant\",\"content\":[]}")
              EVENT(
                  "response.content_part.added",
                  ",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"part\":{\"type\":\"output_text\",\"text\":\"\",\"annotations\":[]}")
                  EVENT(
                      "response.output_text.delta",
                      ",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"Hi\",\"logprobs\":[],\"obfuscation\":\"x\"")
                      EVENT("response.output_text.done", ",\"output_index\":0,\"text\":\"Hi\"") EVENT(
                          "response.content_part.done", ",\"part\":{\"type\":\"output_text\",\"text\":\"Hi\"}")
                          EVENT(
                              "response.output_item.done",
                              ",\"output_index\":0,\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hi\"}]}")
                              COMPLETED,
      "Hi|||stop|3+5|gpt-5-mini" },
    { "summaries of two thoughts",
      EVENT("response.reasoning_summary_part.added", ",\"output_index\":0,\"summary_index\":0")
          EVENT("response.reasoning_summary_text.delta", ",\"summary_index\":0,\"delta\":\"One\"")
              EVENT("response.reasoning_summary_text.done", ",\"text\":\"One\"")
                  EVENT("response.reasoning_summary_part.added", ",\"output_index\":0,\"summary_index\":1")
                      EVENT("response.reasoning_summary_text.delta", ",\"summary_index\":1,\"delta\":\"Two\"")
                          EVENT("response.output_text.delta", ",\"delta\":\"a\"") COMPLETED,
      "a|One\n\nTwo||stop|3+5|gpt-5-mini" },
    { "a call: parts, then the same again whole",
      EVENT(
          "response.output_item.added",
          ",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"call_a\",\"name\":\"f\",\"arguments\":\"\"}")
          EVENT("response.function_call_arguments.delta",
                ",\"item_id\":\"fc_1\",\"output_index\":1,\"delta\":\"{\\\"a\\\"\"")
              EVENT("response.function_call_arguments.delta",
                    ",\"item_id\":\"fc_1\",\"output_index\":1,\"delta\":\":1}\"")
                  EVENT("response.function_call_arguments.done",
                        ",\"item_id\":\"fc_1\",\"output_index\":1,\"arguments\":\"{\\\"a\\\":1}\"")
                      EVENT(
                          "response.output_item.done",
                          ",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"call_a\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}")
                          COMPLETED,
      "||call_a f {\"a\":1}|tool_calls|3+5|gpt-5-mini" },
    { "local servers: the arguments only at their end",
      EVENT("response.output_item.added",
            ",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\"}")
          EVENT("response.function_call_arguments.done", ",\"output_index\":0,\"arguments\":\"{}\"") COMPLETED,
      "||c f {}|tool_calls|3+5|gpt-5-mini" },
    { "local servers: the call only when it is done",
      EVENT(
          "response.output_item.done",
          ",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"}")
          COMPLETED,
      "||c f {}|tool_calls|3+5|gpt-5-mini" },
    { "out of tokens",
      EVENT("response.output_text.delta", ",\"delta\":\"a\"") EVENT(
          "response.incomplete",
          ",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"usage\":{\"input_tokens\":1,\"output_tokens\":16}}"),
      "a|||length|1+16|-" },
    { "incomplete without a reason",
      EVENT("response.incomplete", ",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":null}"),
      "|||length|-|-" },
    { "a failure that may pass",
      EVENT("response.created", ",\"response\":{}") EVENT(
          "response.failed",
          ",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"The model failed to generate a response.\"}}"),
      "|||-|-|-", -EAGAIN, "LLM_ERROR" },
    { "a limit told inside",
      EVENT("response.failed",
            ",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"Rate limit reached\"}}"),
      "|||-|-|-", -EBUSY, "RATE_LIMIT" },
    { "not streamed",
      "{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"all\"}]}]}",
      "all|||stop|-|-" },
    { "the error event",
      EVENT(
          "response.output_text.delta",
          ",\"delta\":\"a\"") "event: error\ndata: {\"type\":\"error\",\"code\":\"ERR_SOMETHING\",\"message\":\"Something went wrong\",\"param\":null}\n\n",
      "a|||-|-|-", -EIO, "LLM_ERROR" },
    { "the error event of a service in front",
      "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"code\":null,\"message\":\"No\"}}\n\n",
      "|||-|-|-", -EIO, "LLM_ERROR" },
};

static void responses_as_the_service_streams_them(void **state)
{
    check_all(&llm_openai_responses, responses_cases, ARRAY_SIZE(responses_cases));
}

/* ---- Anthropic ---- */

#define A(type, members) "event: " type "\ndata: {\"type\":\"" type "\"" members "}\n\n"
#define A_START                                                                                                                                                                \
    A("message_start",                                                                                                                                                         \
      ",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"claude-sonnet-4-5\",\"stop_reason\":null,\"stop_sequence\":null," \
      "\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":2,\"cache_read_input_tokens\":3,\"output_tokens\":1}}")
#define A_BLOCK(index, block) A("content_block_start", ",\"index\":" index ",\"content_block\":{" block "}")
#define A_DELTA(index, delta) A("content_block_delta", ",\"index\":" index ",\"delta\":{" delta "}")
#define A_STOP(index) A("content_block_stop", ",\"index\":" index)
#define A_END(why)                                                                                                     \
    A("message_delta",                                                                                                 \
      ",\"delta\":{\"stop_reason\":\"" why "\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":15}")              \
    A("message_stop", "")
#define PING "event: ping\ndata: {\"type\": \"ping\"}\n\n"

static const struct recorded messages_cases[] = {
    { "pings anywhere",
      A_START PING A_BLOCK("0", "\"type\":\"text\",\"text\":\"\"")
          PING A_DELTA("0", "\"type\":\"text_delta\",\"text\":\"Hi\"") PING A_STOP("0") A_END("end_turn"),
      "Hi|||stop|15+15|claude-sonnet-4-5" },
    { "thinking, its signature, thinking that is kept secret, then the answer",
      A_START A_BLOCK("0", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
          A_DELTA("0", "\"type\":\"thinking_delta\",\"thinking\":\"27 * 453\"")
              A_DELTA("0", "\"type\":\"signature_delta\",\"signature\":\"EqQBCgIYAhIM\"") A_STOP("0")
                  A_BLOCK("1", "\"type\":\"redacted_thinking\",\"data\":\"EmwKAhgB\"") A_STOP("1")
                      A_BLOCK("2", "\"type\":\"text\",\"text\":\"\"")
                          A_DELTA("2", "\"type\":\"text_delta\",\"text\":\"12231\"") A_STOP("2") A_END("end_turn"),
      "12231|27 * 453||stop|15+15|claude-sonnet-4-5" },
    { "text, then a call whose arguments are cut anywhere",
      A_START A_BLOCK("0", "\"type\":\"text\",\"text\":\"\"")
          A_DELTA("0", "\"type\":\"text_delta\",\"text\":\"Let me see.\"") A_STOP("0")
              A_BLOCK("1", "\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"weather\",\"input\":{}")
                  A_DELTA("1", "\"type\":\"input_json_delta\",\"partial_json\":\"\"")
                      A_DELTA("1", "\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"city\\\": \\\"Z\\u00fc\"")
                          A_DELTA("1", "\"type\":\"input_json_delta\",\"partial_json\":\"rich\\\"}\"") A_STOP("1")
                              A_END("tool_use"),
      "Let me see.||toolu_1 weather {\"city\": \"Z\xc3\xbcrich\"}|tool_calls|15+15|claude-sonnet-4-5" },
    { "a call without arguments between two with some",
      A_START A_BLOCK("0", "\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}")
          A_DELTA("0", "\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":1}\"") A_STOP(
              "0") A_BLOCK("1", "\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"g\",\"input\":{}") A_STOP("1")
              A_BLOCK("2", "\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}")
                  A_DELTA("2", "\"type\":\"input_json_delta\",\"partial_json\":\"{}\"") A_STOP("2") A_END("tool_use"),
      "||a f {\"x\":1},b g {},c f {}|tool_calls|15+15|claude-sonnet-4-5" },
    { "services that speak this protocol: the arguments with the call's begin",
      A_START A_BLOCK("0", "\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"x\":1}") A_STOP("0")
          A_END("tool_use"),
      "||a f {\"x\":1}|tool_calls|15+15|claude-sonnet-4-5" },
    { "the service's own tools are not the caller's",
      A_START A_BLOCK("0", "\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":{}")
          A_DELTA("0", "\"type\":\"input_json_delta\",\"partial_json\":\"{}\"") A_STOP("0")
              A_BLOCK("1", "\"type\":\"web_search_tool_result\",\"tool_use_id\":\"s\",\"content\":[]") A_STOP("1")
                  A_DELTA("2", "\"type\":\"text_delta\",\"text\":\"a\"")
                      A_DELTA("2", "\"type\":\"citations_delta\",\"citation\":{}") A_END("end_turn"),
      "a|||stop|15+15|claude-sonnet-4-5" },
    { "overloaded before a word",
      A_START
      "event: error\ndata: {\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\", \"message\": \"Overloaded\"}}\n\n",
      "|||-|-|-", -EAGAIN, "LLM_ERROR" },
    { "an error of another kind in the middle",
      A_START A_DELTA("0", "\"type\":\"text_delta\",\"text\":\"a\"")
          A("error", ",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"No\"}"),
      "a|||-|-|-", -EIO, "LLM_ERROR" },
    { "refused by a classifier", A_START A_DELTA("0", "\"type\":\"text_delta\",\"text\":\"a\"") A_END("refusal"),
      "a|||content_filter|15+15|claude-sonnet-4-5" },
    { "the window is full", A_START A_END("model_context_window_exceeded"), "|||length|15+15|claude-sonnet-4-5" },
    { "stopped by a sequence, with events nobody knows yet",
      A_START A("something_new", ",\"x\":1") A_DELTA("0", "\"type\":\"text_delta\",\"text\":\"a\"")
          A_END("stop_sequence"),
      "a|||stop|15+15|claude-sonnet-4-5" },
    { "arguments for no call",
      A_START A_DELTA("-1", "\"type\":\"input_json_delta\",\"partial_json\":\"{}\"") A_STOP("-1") A_END("end_turn"),
      "|||stop|15+15|claude-sonnet-4-5" },
    { "not streamed", "{\"content\":[{\"type\":\"text\",\"text\":\"all\"}],\"stop_reason\":\"end_turn\"}",
      "all|||stop|-|-" },
    { "cut before message_stop",
      A_START A_DELTA("0", "\"type\":\"text_delta\",\"text\":\"a\"")
          A("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\"}"),
      "a|||-|-|-", -ECONNRESET, "UPSTREAM_CLOSED" },
};

static void messages_as_anthropic_streams_them(void **state)
{
    check_all(&llm_anthropic_messages, messages_cases, ARRAY_SIZE(messages_cases));
}

/* ---- Ollama ---- */

#define O(members)                                                                                                     \
    "{\"model\":\"qwen3\",\"created_at\":\"2025-06-01T00:00:00Z\",\"message\":{\"role\":\"assistant\"," members        \
    "},\"done\":false}\n"
#define O_END(why)                                                                                                                              \
    "{\"model\":\"qwen3\",\"created_at\":\"2025-06-01T00:00:00Z\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done_reason\":\"" why \
    "\",\"done\":true,"                                                                                                                         \
    "\"total_duration\":4883583458,\"load_duration\":1334875,\"prompt_eval_count\":26,\"prompt_eval_duration\":342546000,\"eval_count\":282,\"eval_duration\":4535599000}\n"

static void lines_as_ollama_streams_them(void **state)
{
    static const struct recorded cases[] = {
        { "thinking, then the answer",
          O("\"content\":\"\",\"thinking\":\"Hm\"") O("\"content\":\"\",\"thinking\":\"!\"") O("\"content\":\"Sky\"")
              O_END("stop"),
          "Sky|Hm!||stop|26+282|qwen3" },
        { "calls with objects for arguments, ids or none",
          O("\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"city\":\"Bern\",\"n\":[1,2.5,null]}}}]")
              O("\"content\":\"\",\"tool_calls\":[{\"id\":\"call_x\",\"function\":{\"index\":1,\"name\":\"g\",\"arguments\":{}}}]")
                  O_END("stop"),
          "||made f {\"city\":\"Bern\",\"n\":[1,2.5,null]},call_x g {}|tool_calls|26+282|qwen3" },
        { "out of tokens", O("\"content\":\"a\"") O_END("length"), "a|||length|26+282|qwen3" },
        { "the prompt was in the cache and is not counted",
          O("\"content\":\"a\"") "{\"model\":\"qwen3\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done_reason\":\"stop\",\"done\":true,\"eval_count\":2}\n",
          "a|||stop|-1+2|qwen3" },
        { "an error in the middle",
          O("\"content\":\"a\"") "{\"error\":\"an error was encountered while running the model: unexpected EOF\"}\n",
          "a|||-|-|-", -EIO, "LLM_ERROR" },
        { "the model was only loaded",
          "{\"model\":\"qwen3\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done_reason\":\"load\",\"done\":true}\n",
          "|||stop|-|qwen3" },
        { "CR LF, empty lines, characters cut in two",
          "\r\n" O("\"content\":\"\xe2\x82\xac\xf0\x9f\x98\x80\"") "\r\n" O_END("stop"),
          "\xe2\x82\xac\xf0\x9f\x98\x80|||stop|26+282|qwen3" },
        { "lines behind the end", O_END("stop") O("\"content\":\"late\"") "garbage\n", "|||stop|26+282|qwen3" },
    };

    check_all(&llm_ollama, cases, ARRAY_SIZE(cases));
}

/* ---- answers that are not streamed ---- */

static void whole_answers_as_services_give_them(void **state)
{
    static const struct {
        const struct llm_protocol *protocol;
        const char *text, *wanted;
        int r;
        const char *code;
    } cases[] = {
        { &llm_openai_chat,
          "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":null,\"refusal\":\"I can't.\"},\"finish_reason\":\"stop\"}]}",
          "I can't.|||stop|-|-" },
        { &llm_openai_chat,
          "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]},{\"type\":\"text\",\"text\":\"a\"}]},"
          "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}",
          "a|hm||stop|1+2|-" },
        { &llm_openai_chat,
          "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"},\"id\":\"\",\"type\":\"function\"},"
          "{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"},\"id\":\"\",\"type\":\"function\"}]},\"finish_reason\":\"stop\"}]}",
          "||made f {},made f {}|tool_calls|-|-" },
        { &llm_openai_chat,
          "{\"id\":\"gen-1\",\"choices\":[{\"message\":{\"content\":\"\"},\"finish_reason\":\"error\",\"error\":{\"code\":502,\"message\":\"Upstream died\"}}]}",
          "|||-|-|-", -EAGAIN, "LLM_ERROR" },
        { &llm_openai_chat, "{\"error\":{\"code\":429,\"message\":\"slow\"}}", "|||-|-|-", -EBUSY, "RATE_LIMIT" },
        { &llm_openai_responses,
          "{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"content_filter\"},\"error\":null,\"output\":[{\"type\":\"message\",\"content\":"
          "[{\"type\":\"refusal\",\"refusal\":\"No.\"}]}]}",
          "No.|||content_filter|-|-" },
        { &llm_openai_responses,
          "{\"status\":\"completed\",\"output\":[{\"type\":\"reasoning\",\"summary\":[{\"text\":\"One\"},{\"text\":\"Two\"}],\"content\":[]},"
          "{\"type\":\"web_search_call\"},{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]}]}",
          "a|One\n\nTwo||stop|-|-" },
        { &llm_openai_responses,
          "{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"x\"},\"output\":[]}", "|||-|-|-",
          -EAGAIN, "LLM_ERROR" },
        { &llm_anthropic_messages,
          "{\"content\":[{\"type\":\"redacted_thinking\",\"data\":\"x\"},{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}],\"stop_reason\":\"refusal\"}",
          "ab|||content_filter|-|-" },
        { &llm_anthropic_messages,
          "{\"content\":[],\"model\":\"m\",\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}",
          "|||stop|1+1|m" },
        { &llm_ollama,
          "{\"message\":{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"done\":true}",
          "a||made f {}|tool_calls|-|-" },
        { &llm_ollama, "[]", "|||-|-|-", -EBADMSG, "UPSTREAM_INVALID" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check_whole(cases[i].protocol, cases[i].text, cases[i].wanted, cases[i].r, cases[i].code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chat_completions_as_many_services_stream_them),
        cmocka_unit_test(calls_as_many_services_stream_them),
        cmocka_unit_test(responses_as_the_service_streams_them),
        cmocka_unit_test(messages_as_anthropic_streams_them),
        cmocka_unit_test(lines_as_ollama_streams_them),
        cmocka_unit_test(whole_answers_as_services_give_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
