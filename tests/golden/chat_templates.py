"""Chat templates in the manner of several model families, written for these tests.

Each uses what templates of that family use; none is a copy. The default model's own template is read
from its GGUF file by chat_template_golden.py.
"""

HEADERS = r"""{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system_text = messages[0]['content'] | trim %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set system_text = "" %}
    {%- set rest = messages %}
{%- endif %}
{#- The system part is always there. #}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: tools\n" }}
{%- endif %}
{{- "Today: " + strftime_now("%d %b %Y") + "\n\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- "Functions you may call, as JSON:\n\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- system_text }}
{{- "<|eot_id|>" }}
{%- if tools_in_user_message and tools is not none %}
    {%- if rest | length != 0 %}
        {%- set first_text = rest[0]['content'] | trim %}
        {%- set rest = rest[1:] %}
    {%- else %}
        {{- raise_exception("Tools need a first user message to go into") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\n\n' -}}
    {{- "Answer with a call {\"name\": .., \"parameters\": ..} if one helps.\n\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=2) }}
        {{- "\n\n" }}
    {%- endfor %}
    {{- first_text + "<|eot_id|>" }}
{%- endif %}
{%- for message in rest %}
    {%- if not (message.role == 'tool' or message.role == 'ipython' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}
            {{- raise_exception("Only one call at a time, not " ~ message.tool_calls | length) }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
        {{- '{"name": "' + call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}
        {%- if message.content is mapping or (message.content is iterable and message.content is not string) %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""

INSTRUCTIONS = r"""{%- if messages[0]["role"] == "system" %}
    {%- set system_text = messages[0]["content"] %}
    {%- set turns = messages[1:] %}
{%- else %}
    {%- set turns = messages %}
{%- endif %}
{%- set users = turns | selectattr("role", "equalto", "user") | list %}
{%- macro show_call(c) -%}
{"name": {{ c.function.name | tojson }}, "arguments": {{ c.function.arguments | tojson }}
    {%- if c.id is defined and c.id | string | length == 9 %}, "id": "{{ c.id }}"{% endif -%}
}
{%- endmacro %}
{#- Users and assistants take turns, tools aside. #}
{%- set ns = namespace(index=0) %}
{%- for m in turns if m.role in ("user", "assistant") and m.tool_calls is undefined %}
    {%- if (m.role == "user") != (ns.index % 2 == 0) %}
        {{- raise_exception("Roles must take turns; message " ~ loop.index ~ " of " ~ loop.length ~ " does not") }}
    {%- endif %}
    {%- set ns.index = ns.index + 1 %}
{%- endfor %}
{{- bos_token }}
{%- for m in turns %}
    {%- if m["role"] == "user" %}
        {%- if tools is defined and tools is not none and m == users[-1] %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set f = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in f.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val | tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {{- ", " if not loop.last else "]" }}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_text is defined %}
            {{- "[INST] " + system_text + "\n\n" + m["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + m["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif m.tool_calls is defined and m.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for c in m.tool_calls %}{{ show_call(c) }}{% if not loop.last %}, {% endif %}{% endfor %}
        {{- "]" ~ eos_token }}
    {%- elif m["role"] == "assistant" %}
        {{- " " + m["content"] | trim + eos_token }}
    {%- elif m["role"] in ["tool", "tool_results"] %}
        {%- set body = m.content.content if m.content is mapping and m.content.content is defined else m.content %}
        {{- '[TOOL_RESULTS] {"content": ' + body | string | tojson + ", " -}}
        {{- '"call_id": "' + (m.tool_call_id | default("none", true))[:9] + '"}[/TOOL_RESULTS]' }}
    {%- elif m["role"] != "system" %}
        {{- raise_exception("The role " ~ m["role"] ~ " is not known here") }}
    {%- endif %}
{%- endfor %}
"""

MARKS = r"""{%- macro text_of(content) -%}
    {%- if content is string -%}
        {{- content -}}
    {%- elif content is none or content is undefined -%}
    {%- else -%}
        {%- for part in content -%}
            {%- if part.type == 'text' -%}{{ part.text }}{%- else -%}{{ raise_exception('Only text parts, not ' + part.type) }}{%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- text_of(messages[0].content) + '\n\n' }}
    {%- endif %}
    {{- "# Tools\n\nSignatures inside <tools></tools>:\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools>\n\nA call is <tool_call>\n{\"name\": <name>, \"arguments\": <object>}\n</tool_call><|im_end|>\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + text_of(messages[0].content) + '<|im_end|>\n' }}
{%- else %}
    {{- '<|im_start|>system\nYou help.<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(searching=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and not (text_of(message.content).startswith('<tool_response>') and text_of(message.content).endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last = index %}
        {%- break %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = text_of(message.content) %}
    {%- if message.role == "system" and loop.first %}{% continue %}{% endif %}
    {%- if message.role in ["user", "system"] %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thoughts = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thoughts = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thoughts = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {{- '<|im_start|>' + message.role + '\n' }}
        {%- if loop.index0 > ns.last and (loop.last or thoughts) %}
            {{- '<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- content }}
        {%- endif %}
        {%- for call in message.tool_calls or [] %}
            {%- if (loop.first and content) or not loop.first %}{{ '\n' }}{% endif %}
            {%- set call = call.function if call.function else call %}
            {{- '<tool_call>\n{"name": "' }}
            {{- call.name }}
            {{- '", "arguments": ' }}
            {{- call.arguments if call.arguments is string else call.arguments | tojson }}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (loop.previtem.role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' + content + '\n</tool_response>' }}
        {%- if loop.last or (loop.nextitem.role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
"""

# Plain tags without dashes: what trim_blocks and lstrip_blocks do decides every newline.
TURNS = """{% set roles = {'user': 'User', 'assistant': 'Assistant', 'system': 'System'} %}
{% for message in messages %}
  {% if message.role not in roles %}
    {{ raise_exception('no role ' ~ message.role) }}
  {% endif %}
{{ roles[message.role] | upper }}:
  {# the text follows, indented #}
  {% filter indent(2) %}
{{ message.content if message.content is string else message.content | map(attribute='text') | join(' ') }}
  {% endfilter %}
  {% for call in message.get('tool_calls', []) %}
    * {{ call.function.name | capitalize }}({% for k, v in call.function.arguments.items() %}{{ k }}={{ v }}{{ ', ' if not loop.last }}{% endfor %})
  {% else %}
    {% if loop.last and tools %}
(tools: {{ tools | map(attribute='function.name') | join(', ') }})
    {% endif %}
  {% endfor %}
{% endfor %}
{% if add_generation_prompt %}
ASSISTANT:
{%+ endif %}
"""

# What follows is used with fewer conversations (FURTHER in chat_template_golden.py).

# Conditions over neighbours by index; calls and results of tools between marks. In the manner of Qwen2.5.
NEIGHBOURS = r"""{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are a test.' }}
    {%- endif %}
    {{- "\n\n# Tools\n\nCall any of these, as JSON lines in <tools></tools>:\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools>\n\nAs {\"name\": <name>, \"arguments\": <arguments>} between <tool_call></tool_call>.<|im_end|>\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\nYou are a test.<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\n' + message.content }}
        {%- endif %}
        {%- for call in message.tool_calls %}
            {%- if call.function is defined %}
                {%- set call = call.function %}
            {%- endif %}
            {{- '\n<tool_call>\n{"name": "' }}
            {{- call.name }}
            {{- '", "arguments": ' }}
            {{- call.arguments | tojson }}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' }}
        {{- message.content }}
        {{- '\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

# All on one line, a text or false in one variable, the beginning-of-text token before every question. LLaMA-2.
BRACKETS = r"""{% if messages[0]['role'] == 'system' %}{% set turns = messages[1:] %}{% set first = messages[0]['content'] %}{% else %}{% set turns = messages %}{% set first = false %}{% endif %}{% for message in turns %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Question and answer take turns') }}{% endif %}{% if loop.index0 == 0 and first != false %}{% set content = '<<SYS>>\n' + first + '\n<</SYS>>\n\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

# A macro that calls itself, items of a mapping as a filter, keys with the names of keywords. Hermes-3.
SIGNATURES = r"""{%- macro python_type(spec) %}
{%- set names = {
    "string": "str",
    "number": "float",
    "integer": "int",
    "boolean": "bool"
} %}
{%- if names[spec.type] is defined %}
    {{- names[spec.type] }}
{%- elif spec.type == "array" %}
    {{- "list[" + python_type(spec['items'] or {}) + "]" }}
{%- elif spec.type == "object" %}
    {%- if spec.additionalProperties is defined %}
        {{- "dict[str, " + python_type(spec.additionalProperties) + ']' }}
    {%- else %}
        {{- "dict" }}
    {%- endif %}
{%- elif spec.type is iterable %}
    {{- "Union[" }}
    {%- for t in spec.type %}
      {{- python_type({"type": t}) }}
      {%- if not loop.last %}
        {{- "," }}
    {%- endif %}
    {%- endfor %}
    {{- "]" }}
{%- else %}
    {{- "Any" }}
{%- endif %}
{%- endmacro %}

{{- bos_token }}
{%- if tools is defined and tools %}
{{- '<|im_start|>system\nSignatures: <tools> ' }}
{%- for tool in tools %}
    {%- if tool.function is defined %}
        {%- set tool = tool.function %}
    {%- endif %}
    {{- '{"name": "' + tool.name + '", "description": "' + tool.name + '(' }}
    {%- for key, fields in tool.parameters.properties|items %}
        {{- key + ": " + python_type(fields) }}
        {%- if not loop.last %}
            {{- ", " }}
        {%- endif %}
    {%- endfor %}
    {{- ")" }}
    {%- if tool.return is defined %}
        {{- " -> " + python_type(tool.return) }}
    {%- endif %}
    {{- " - " + tool.description + "\n\n" }}
    {%- for key, fields in tool.parameters.properties|items %}
        {%- if loop.first %}
            {{- "    Args:\n" }}
        {%- endif %}
        {{- "        " + key + "(" + python_type(fields) + "): " + (fields.description|default('no words'))|trim }}
    {%- endfor %}
    {{- '", "parameters": ' }}
    {%- if tool.parameters.properties | length == 0 %}
        {{- "{}" }}
    {%- else %}
        {{- tool.parameters|tojson }}
    {%- endif %}
    {{- "}" }}
    {%- if not loop.last %}
        {{- "\n" }}
    {%- endif %}
{%- endfor %}
{{- " </tools><|im_end|>\n" }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "user" or message.role == "system" or (message.role == "assistant" and message.tool_calls is not defined) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
    {%- for call in message.tool_calls %}
       {{- '\n<tool_call>\n' }}
           {%- if call.function is defined %}
               {%- set call = call.function %}
           {%- endif %}
            {{- '{"name": "' }}
            {{- call.name }}
            {{- '"' }}
            {{- ', '}}
            {%- if call.arguments is defined %}
                {{- '"arguments": ' }}
                {%- if call.arguments is string %}
                    {{- call.arguments }}
                {%- else %}
                    {{- call.arguments|tojson }}
                {%- endif %}
            {%- endif %}
             {{- '}' }}
            {{- '\n</tool_call>' }}
    {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.previtem and loop.previtem.role != "tool" %}
            {{- '<|im_start|>tool\n' }}
        {%- endif %}
        {{- '<tool_response>\n' }}
        {{- message.content }}
        {%- if not loop.last %}
            {{- '\n</tool_response>\n' }}
        {%- else %}
            {{- '\n</tool_response>' }}
        {%- endif %}
        {%- if not loop.last and loop.nextitem.role != "tool" %}
            {{- '<|im_end|>' }}
        {%- elif loop.last %}
            {{- '<|im_end|>' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

# Modes, text in namespaces, values printed as Python does, marked answers ({% generation %}). SmolLM3.
MODES = r"""{# ───── defaults ───── #}
{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}
{%- endif -%}
{%- if enable_thinking -%}
  {%- set mode = "/think" -%}
{%- else -%}
  {%- set mode = "/no_think" -%}
{%- endif -%}
{{- "<|im_start|>system\n" -}}
{%- if messages[0].role == "system" -%}
  {%- set first = messages[0].content -%}
  {%- if "/no_think" in first -%}
    {%- set mode = "/no_think" -%}
  {%- elif "/think" in first -%}
    {%- set mode = "/think" -%}
  {%- endif -%}
  {%- set orders = first.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
{%- if "/system_override" in first -%}
  {{- orders.replace("/system_override", "").rstrip() -}}
  {{- "<|im_end|>\n" -}}
{%- else -%}
  {{- "## Facts\n\n" -}}
  {%- set today = strftime_now("%d %B %Y") -%}
  {{- "Today: " ~ today ~ "\n" -}}
  {{- "Mode: " + mode + "\n\n" -}}
  {%- if orders -%}
    {{- orders + "\n\n" -}}
  {%- elif mode == "/think" -%}
    {{- "Think between <think> and </think>.\n\n" -}}
  {%- endif -%}
  {%- if xml_tools or python_tools or tools -%}
    {{- "### Tools\n\n" -}}
    {%- if xml_tools or tools -%}
      {%- if tools -%}
        {%- set xml_tools = tools -%}
      {%- endif -%}
      {%- set ns = namespace(text="Within <tools></tools>:\n\n<tools>\n") -%}
      {%- for tool in xml_tools[:] -%} {# a list, whatever it was #}
        {%- set ns.text = ns.text ~ (tool | string) ~ "\n" -%}
      {%- endfor -%}
      {{- ns.text + "</tools>\n\n" -}}
    {%- endif -%}
  {%- endif -%}
  {{- "<|im_end|>\n" -}}
{%- endif -%}
{# ───── turns ───── #}
{%- for message in messages -%}
    {%- set content = message.content if message.content is string else "" -%}
    {%- if message.role == "user" -%}
        {{ "<|im_start|>" + message.role + "\n"  + content + "<|im_end|>\n" }}
    {%- elif message.role == "assistant" -%}
        {% generation %}
        {%- if mode == "/think" -%}
            {{ "<|im_start|>assistant\n" + content.lstrip("\n") + "<|im_end|>\n" }}
        {%- else -%}
            {{ "<|im_start|>assistant\n" + "<think>\n\n</think>\n" + content.lstrip("\n") + "<|im_end|>\n" }}
        {%- endif -%}
        {% endgeneration %}
    {%- elif message.role == "tool" -%}
    {{ "<|im_start|>" + "user\n"  + content + "<|im_end|>\n" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {%- if mode == "/think" -%}
        {{ "<|im_start|>assistant\n" }}
    {%- else -%}
        {{ "<|im_start|>assistant\n" + "<think>\n\n</think>\n"  }}
    {%- endif -%}
{%- endif -%}
"""

# One line, newlines in texts; tools in a message's own key; an end or a question at the end. Phi-3 and Phi-4-mini.
PIPES = r"""{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}{% elif (message['role'] in ['user', 'system']) %}{{'<|' + message['role'] + '|>' + '\n' + message['content'] + '<|end|>' + '\n'}}{% elif (message['role'] == 'assistant') %}{{'<|assistant|>' + '\n' + message['content'] + '<|end|>' + '\n'}}{% endif %}{% endfor %}{% if add_generation_prompt and messages[-1]['role'] != 'assistant' %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"""

# A call block, filters in chains, results of tools in a loop of their own, dates. LLaMA-3.2, Mistral-Small, Granite.
CHAINS = r"""{%- set today = strftime_now("%Y-%m-%d") if strftime_now is defined else "26 Jul 2024" %}
{%- set known = ["system", "user", "assistant", "tool"] %}
{%- macro turn(role, extra=none) %}
    {{- '<|start_of_role|>' ~ role ~ ('' if extra is none else extra | tojson) ~ '<|end_of_role|>' }}
    {{- caller() if caller else '' }}
    {{- '<|end_of_text|>\n' }}
{%- endmacro %}
{%- set plain = messages | rejectattr('role', 'in', ['tool']) | list %}
{%- set system, rest = (plain[0].content, plain[1:]) if plain and plain[0].role == 'system' else ('', plain) %}
{%- call turn('system') %}{{ (system or 'Date: ' ~ today) | trim }}{% if tools %}{{ '\nTools: ' ~ (tools | map(attribute='function') | map(attribute='name') | sort | join(', ')) }}{% endif %}{% endcall %}
{%- for message in rest %}
    {%- if message.role not in known %}{{ raise_exception("Role " ~ message.role ~ " of " ~ (known | length)) }}{% endif %}
    {%- set text = message.content if message.content is string else message.content | selectattr('type', 'equalto', 'text') | map(attribute='text') | join('\n') %}
    {%- set calls = message.tool_calls | default([], true) %}
    {%- call turn(message.role, {'calls': calls | length} if calls else none) %}{{ text | replace('\r\n', '\n') | trim }}{% for c in calls %}{{ '\n<call>' ~ {'name': c['function']['name'], 'arguments': c['function']['arguments']} | tojson }}{% endfor %}{% endcall %}
{%- endfor %}
{%- for message in messages | selectattr('role', 'equalto', 'tool') %}
    {{- '[' ~ loop.index ~ '/' ~ loop.length ~ '] ' ~ (message.content | string)[:12] ~ '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_of_role|>assistant<|end_of_role|>' }}
{%- endif %}
"""
