"""Chat templates in the manner of four model families, written for these tests.

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
