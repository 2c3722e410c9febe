/// How families of models write calls of tools: their templates, and answers of theirs.
#pragma once

namespace lamella::tests {

struct family {
  const char* name;
  /// How its template writes the calls of a message.
  const char* calls;
  /// An answer of find with q "a b" and n 7, then of now.
  const char* answer;
  bool takes_texts = false;
  const char* said = "So: "; ///< before `answer`, where text may be
  const char* only_text = "Only text.";
  bool one = false;            ///< an answer has one call: of find
  const char* prompt_end = ""; ///< of the template
  const char* thinking = "";   ///< of the template, before content
  const char* joint = "";      ///< between `said` and `answer`, where both are there
};

#define EACH "{% for c in m.tool_calls %}"
#define NAME "{{ c.function.name }}"
#define JSON "{{ c.function.arguments|tojson }}"
#define OBJECT "{\"name\": \"" NAME "\", \"arguments\": " JSON "}"
#define LISTED "{% if not loop.first %}, {% endif %}" OBJECT "{% endfor %}"
#define PARAMETERS_OBJECT EACH "{\"name\": \"" NAME "\", \"parameters\": " JSON "}{% endfor %}"
#define PARAMETERS "{% for k, v in c.function.arguments.items() %}"
#define DSML_CALL                                                                                  \
  "<｜DSML｜invoke name=\"" NAME "\">\n" PARAMETERS                                                \
  "<｜DSML｜parameter name=\"{{ k }}\" string=\""                                                \
  "{{ 'true' if v is string else 'false' }}\">{{ v if v is string else v|tojson }}"                \
  "</｜DSML｜parameter>\n{% endfor %}</｜DSML｜invoke>\n{% endfor %}"
#define DSML_CALLS                                                                                     \
  "<｜DSML｜invoke name=\"find\">\n<｜DSML｜parameter name=\"q\" string=\"true\">a b"              \
  "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">7</｜DSML｜parameter>\n" \
  "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n"

inline const family families[] = {
    {"Hermes, Qwen 2.5 and 3, Granite 4",
     EACH "{% if not loop.first %}\n{% endif %}<tool_call>\n" OBJECT "\n</tool_call>{% endfor %}",
     "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}\n</tool_call>\n"
     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
    {"Mistral until 2024", "[TOOL_CALLS] [" EACH LISTED "]",
     "[TOOL_CALLS][{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}, "
     "{\"name\": \"now\", \"arguments\": {}}]"},
    {"Mistral from 2025 on, Devstral, Magistral",
     EACH "[TOOL_CALLS]" NAME "[ARGS]" JSON "{% endfor %}",
     "[TOOL_CALLS]find[ARGS]{\"q\": \"a b\", \"n\": 7}[TOOL_CALLS]now[ARGS]{}"},
    {"Granite 3", "<|tool_call|>[" EACH LISTED "]",
     "<|tool_call|>[{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}, "
     "{\"name\": \"now\", \"arguments\": {}}]"},
    {"Phi 4", "<|tool_call|>[" EACH LISTED "]<|/tool_call|>",
     "<|tool_call|>[{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}, "
     "{\"name\": \"now\", \"arguments\": {}}]<|/tool_call|>"},
    {"Nemotron", "<TOOLCALL>[" EACH LISTED "]</TOOLCALL>",
     "<TOOLCALL>[{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}, "
     "{\"name\": \"now\", \"arguments\": {}}]</TOOLCALL>"},
    {"Hunyuan", "<tool_calls>[" EACH LISTED "]</tool_calls>",
     "<tool_calls>[{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}, "
     "{\"name\": \"now\", \"arguments\": {}}]</tool_calls>"},
    {"MiniMax M1", "<tool_calls>\n" EACH OBJECT "\n{% endfor %}</tool_calls>",
     "<tool_calls>\n{\"name\": \"find\", \"arguments\": {\"q\": \"a b\", \"n\": 7}}\n"
     "{\"name\": \"now\", \"arguments\": {}}\n</tool_calls>"},
    {"Functionary 3.1", EACH "<function=" NAME ">" JSON "</function>{% endfor %}",
     "<function=find>{\"q\": \"a b\", \"n\": 7}</function><function=now>{}</function>"},
    {"DeepSeek V3 and R1",
     "<｜tool▁calls▁begin｜>" EACH "{% if not loop.first %}\n{% endif %}<｜tool▁call▁begin｜>{{ "
     "c.type }}<｜tool▁sep｜>" NAME "\n```json\n{{ '' + c.function.arguments }}\n```"
     "<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n"
     "{\"q\": \"a b\", \"n\": 7}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function"
     "<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     true},
    {"DeepSeek V3.1",
     "<｜tool▁calls▁begin｜>" EACH "<｜tool▁call▁begin｜>" NAME "<｜tool▁sep｜>" JSON
     "<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>{\"q\": \"a b\", \"n\": 7}"
     "<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
     "<｜tool▁calls▁end｜>"},
    {"Command R7B and A",
     "<|START_ACTION|>[\n" EACH "{% if not loop.first %},\n{% endif %}    {\"tool_call_id\": "
     "\"{{ loop.index0 }}\", \"tool_name\": \"" NAME "\", \"parameters\": " JSON
     "}{% endfor %}{{ '\n' }}]<|END_ACTION|>",
     "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"find\", \"parameters\": "
     "{\"q\": \"a b\", \"n\": 7}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"now\", "
     "\"parameters\": {}}\n]<|END_ACTION|>"},
    {"Qwen3 Coder, Qwen 3.5, Nemotron 3",
     EACH "{% if not loop.first %}\n{% endif %}<tool_call>\n<function=" NAME ">\n" PARAMETERS
          "<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>"
          "{% endfor %}",
     "<tool_call>\n<function=find>\n<parameter=q>\na b\n</parameter>\n<parameter=n>\n7\n"
     "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n"
     "</tool_call>"},
    {"Seed OSS",
     EACH "{% if not loop.first %}\n{% endif %}<seed:tool_call>\n<function=" NAME ">\n" PARAMETERS
          "<parameter={{ k }}>{{ v }}</parameter>\n{% endfor %}</function>\n</seed:tool_call>"
          "{% endfor %}",
     "<seed:tool_call>\n<function=find>\n<parameter=q>a b</parameter>\n<parameter=n>7</parameter>\n"
     "</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=now>\n</function>\n"
     "</seed:tool_call>"},
    {"GLM 4.5",
     EACH "{% if not loop.first %}\n{% endif %}<tool_call>" NAME "\n" PARAMETERS
          "<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}</arg_value>\n{% endfor %}</tool_call>"
          "{% endfor %}",
     "<tool_call>find\n<arg_key>q</arg_key>\n<arg_value>a b</arg_value>\n<arg_key>n</arg_key>\n"
     "<arg_value>7</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>"},
    {"GLM 4.7",
     EACH "<tool_call>" NAME PARAMETERS "<arg_key>{{ k }}</arg_key><arg_value>{{ v }}</arg_value>"
          "{% endfor %}</tool_call>{% endfor %}",
     "<tool_call>find<arg_key>q</arg_key><arg_value>a b</arg_value><arg_key>n</arg_key><arg_value>7"
     "</arg_value></tool_call><tool_call>now</tool_call>"},
    {"MiniMax M2",
     "<minimax:tool_call>\n" EACH "<invoke name=\"" NAME "\">\n" PARAMETERS
     "<parameter name=\"{{ k }}\">{{ v }}</parameter>\n{% endfor %}</invoke>\n{% endfor %}"
     "</minimax:tool_call>",
     "<minimax:tool_call>\n<invoke name=\"find\">\n<parameter name=\"q\">a b</parameter>\n"
     "<parameter name=\"n\">7</parameter>\n</invoke>\n<invoke name=\"now\">\n</invoke>\n"
     "</minimax:tool_call>"},
    {"DeepSeek V3.2", "<｜DSML｜function_calls>\n" EACH DSML_CALL "</｜DSML｜function_calls>",
     "<｜DSML｜function_calls>\n" DSML_CALLS "</｜DSML｜function_calls>"},
    {"DeepSeek V4", "<｜DSML｜tool_calls>\n" EACH DSML_CALL "</｜DSML｜tool_calls>",
     "<｜DSML｜tool_calls>\n" DSML_CALLS "</｜DSML｜tool_calls>"},
    {"Kimi K2",
     "<|tool_calls_section_begin|>" EACH
     "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>" JSON
     "<|tool_call_end|>{% endfor %}<|tool_calls_section_end|>",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>"
     "{\"q\": \"a b\", \"n\": 7}<|tool_call_end|><|tool_call_begin|>functions.now:1"
     "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"},
    {"LFM2",
     "<|tool_call_start|>[" EACH "{% if not loop.first %}, {% endif %}" NAME "(" PARAMETERS
     "{% if not loop.first %}, {% endif %}{{ k }}={{ v|tojson }}{% endfor %}){% endfor %}"
     "]<|tool_call_end|>",
     "<|tool_call_start|>[find(q=\"a b\", n=7), now()]<|tool_call_end|>"},
    {"FunctionGemma",
     EACH "<start_function_call>call:" NAME "{{ '{' }}" PARAMETERS
          "{% if not loop.first %},{% endif %}{{ k }}:<escape>{{ v }}<escape>{% endfor %}{{ '}' }}"
          "<end_function_call>{% endfor %}",
     "<start_function_call>call:find{q:<escape>a b<escape>,n:7}<end_function_call>"
     "<start_function_call>call:now{}<end_function_call>"},
    {"Gemma 4",
     EACH "<|tool_call>call:" NAME "{{ '{' }}" PARAMETERS
          "{% if not loop.first %},{% endif %}{{ k }}:<|\"|>{{ v }}<|\"|>{% endfor %}{{ '}' }}"
          "<tool_call|>{% endfor %}",
     "<|tool_call>call:find{q:<|\"|>a b<|\"|>,n:7}<tool_call|><|tool_call>call:now{}<tool_call|>"},
    {"Apertus",
     "<|tools_prefix|>[" EACH "{% if not loop.first %}, {% endif %}{\"" NAME "\": " JSON
     "}{% endfor %}]<|tools_suffix|>",
     "<|tools_prefix|>[{\"find\": {\"q\": \"a b\", \"n\": 7}}, {\"now\": {}}]<|tools_suffix|>"},
    {"LLaMA 3", PARAMETERS_OBJECT,
     "{\"name\": \"find\", \"parameters\": {\"q\": \"a b\", \"n\": 7}}", false, "", "Only text.",
     true},
    {"LLaMA 3 behind its mark", PARAMETERS_OBJECT,
     "<|python_tag|>{\"name\": \"find\", \"parameters\": {\"q\": \"a b\", \"n\": 7}}", false,
     "So: ", "<b>Only</b> text.", true},
    {"LLaMA 3's built-in tools", PARAMETERS_OBJECT, "<|python_tag|>find.call(q=\"a b\", n=7)",
     false, "So: ", "Only text.", true},
    {"InternLM",
     EACH "<|action_start|><|plugin|>\n{\"name\": \"" NAME "\", \"parameters\": " JSON
          "}<|action_end|>{% endfor %}",
     "<|action_start|><|plugin|>\n{\"name\": \"find\", \"parameters\": {\"q\": \"a b\", "
     "\"n\": 7}}<|action_end|>",
     false, "So: ", "Only text.", true},
    {"Functionary 3.2", EACH ">>>" NAME "\n{{ '' + c.function.arguments }}{% endfor %}",
     "find\n{\"q\": \"a b\", \"n\": 7}>>>now\n{}", true, "all\nSo: ", "all\nOnly text.", false,
     ">>>", "", ">>>"},
    {"gpt-oss",
     EACH "<|start|>assistant to=functions." NAME "<|channel|>commentary json<|message|>" JSON
          "<|call|>{% endfor %}",
     "<|channel|>commentary to=functions.find <|constrain|>json<|message|>{\"q\": \"a b\", "
     "\"n\": 7}",
     false, "<|channel|>commentary<|message|>So:<|end|><|start|>assistant",
     "<|channel|>final<|message|>Only text.", true, "<|start|>assistant",
     "{% if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>"
     "{% endif %}"},
};

#undef EACH
#undef NAME
#undef JSON
#undef OBJECT
#undef LISTED
#undef PARAMETERS_OBJECT
#undef PARAMETERS
#undef DSML_CALL
#undef DSML_CALLS

} // namespace lamella::tests
