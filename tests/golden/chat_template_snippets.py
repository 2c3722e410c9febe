"""Small templates, one feature each."""

MESSAGES = [{"role": "user", "content": " Hi <there> "}, {"role": "assistant", "content": "Yes?"}]
VARIABLES = {
    "name": "Ann", "empty": "", "zero": 0, "three": 3, "pi": 3.14159, "yes": True, "no": False, "nothing": None,
    "words": ["pear", "Apple", "fig", "apple"], "numbers": [3, 1, 2], "nested": [[1, 2], [3, [4]]],
    "map": {"b": 1, "a": "two", "items": "shadow", "C": None}, "text": "one two  three\nfour",
    "uni": "Žluťoučký kůň 🦊 ß", "people": [{"name": "Zoe", "age": 30, "tags": {"x": 1}},
                                           {"name": "bob", "age": 25}, {"name": "Cy"}],
    "tool": {"type": "function", "function": {"name": "get_weather", "description": "The weather of a place, today or on "
             "another day of this week, as the nearest station sees it.", "parameters": {"type": "object", "properties": {
                 "place": {"type": "string", "description": "where"}, "day": {"enum": ["today", "tomorrow"]}},
                 "required": ["place"]}}},
    "big": 123456789012345678901234567890, "bigs": [-18446744073709551617, 18446744073709551616, 99999999999999999999, 7, -1.5],
    "pages": ["The quick brown fox jumps over the lazy dog, and the dog, who is not that lazy, runs after the fox.",
              "one\ntwo\n" + "a line that is longer than what fits into eighty characters, and is cut behind a word\n"
              "the end it's", "äöü " * 30, "日本語" * 30, "x\u2003y \u200b\t" * 12],
}

SNIPPETS = r"""
{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }}
{{ -2 ** 2 }} {{ (1, 2) }} {{ (1,) }} {{ () }} {{ [1, 'a', "it's", none, true] }} {{ {'a': 1, 'b': [2]} }}
{{ 1 + 2 ~ 3 }}
{{ 1 ~ 2 * 3 }} {{ 'x' ~ 1 if no else 'y' ~ 1 }} {{ 'a' ~ none ~ true ~ 1.0 ~ [1] }}
{{ 'a' 'b' "c" }} {{ 'it\'s' }} {{ "tab\there" }} {{ '\x41\u00e9\101' }} {{ 'a\qb' }}
{{ 1.5 }} {{ 1e3 }} {{ 1.0e-7 }} {{ 1e16 }} {{ 123456789.123 }} {{ 0.1 + 0.2 }} {{ 1_000 }} {{ 100.0 }} {{ 1e22 }}
{{ 3 > 2 > 1 }} {{ 1 < 2 and 2 < 1 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 'b' in 'abc' }} {{ 4 not in numbers }}
{{ not true }} {{ not 0 and 1 }} {{ '' or 'x' }} {{ 0 and missing.attr }} {{ none or false }} {{ 1 and 2 }}
{{ 'yes' if yes else 'no' }}|{{ 'yes' if no }}|{{ 'a' if no else 'b' if no else 'c' }}
{{ missing }}|{{ missing is defined }}|{{ missing is undefined }}|{{ missing == missing }}|{{ missing or 'x' }}|{{ not missing }}
{{ missing.attr }}
{{ missing + 1 }}
{{ missing() }}
{{ missing['x'] }}
{{ nothing.attr }}|{{ name.attr }}|{{ map.zzz }}|{{ map['zzz'] }}|{{ three.attr }}|{{ words.zzz }}
{{ map.zzz.deeper }}
{{ -missing }}
{{ missing|length }}|{{ missing|upper }}|{{ missing|join(',') }}|{{ missing|list }}|{{ missing|default('d') }}|{{ 'x' in missing }}
{{ missing|tojson }}
{{ missing|int }}
{{ 'a' + 1 }}
{{ 1 + none }}
{{ [1] + [2] }} {{ (1,) + (2,) }} {{ [0] * 3 }} {{ 'ab' * 2 }} {{ 2 * 'ab' }} {{ 'x' * -1 }}|
{{ 1 / 0 }}
{{ 1 % 0 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ 1 in 5 }}
{{ 'a' in none }}
{{ 5 in 'abc' }}
{{ map.b }} {{ map['a'] }} {{ map.get('b') }} {{ map.get('zz') }} {{ map.get('zz', 'dflt') }} {{ map['items'] }}
{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %} {{ map.keys()|list }} {{ map.values()|list }} {{ map|list }}
{{ map['items'] is string }} {{ map.items is callable }} {{ map.items is string }}
{{ words[0] }} {{ words[-1] }} {{ words[9] }}|{{ words[1:] }} {{ words[:-1] }} {{ words[::2] }} {{ words[::-1] }} {{ words[5:] }}
{{ name[0] }} {{ name[-1] }} {{ name[1:] }} {{ name[::-1] }} {{ uni[0] }} {{ uni[-3] }} {{ uni[2:6] }} {{ name[10] }}|{{ name[-10:2] }}
{{ words[1:3][0] }} {{ words[-3:-1] }} {{ 'abcdef'[4:1:-2] }} {{ 'abcdef'[:100] }} {{ 'abcdef'[::-3] }} {{ (1,2,3)[1:] }}
{{ numbers[::0] }}
{{ nested[1][1][0] }} {{ nested.0.1 }} {{ nested[0].1 }} {{ people[0].tags.x }} {{ people[2].tags is defined }}
{% for x in numbers %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }} {% endfor %}
{% for x in numbers %}{{ loop.previtem if loop.previtem is defined else '-' }}<{{ x }}>{{ loop.nextitem|default('-') }} {% endfor %}
{% for x in [] %}x{% else %}none here{% endfor %}|{% for x in missing %}x{% else %}nor here{% endfor %}
{% for x in numbers if x > 1 %}{{ loop.index }}:{{ x }} {% else %}no{% endfor %}|{% for x in numbers if x > 9 %}x{% else %}no{% endfor %}
{% for a, b in [(1, 2), [3, 4]] %}{{ a }}-{{ b }} {% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}
{% for x in 5 %}{{ x }}{% endfor %}
{% for c in 'héy' %}[{{ c }}]{% endfor %}{% for k in map %}{{ k }}{% endfor %}
{% for x in numbers %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}|{% for x in numbers %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for i in range(3) %}{% for j in range(i) %}{{ i }}{{ j }} {{ loop.depth }}{% endfor %};{% endfor %}
{% for i in [1, 2, 3] %}{{ loop.cycle('a', 'b') }}{{ loop.changed(i // 2) }} {% endfor %}
{% for x in [[1, [2, []]], 3] recursive %}{% if x is iterable %}({{ loop(x) }}{{ loop.depth }}){% else %}{{ x }}{% endif %}{% endfor %}
{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}
{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}
{% set ns = namespace(n=0, found=false) %}{% for i in numbers %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }} {{ ns.found }} {{ ns.other is defined }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}
{% set map.b = 2 %}
{% set q.b = 2 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = (3, 4) %}{{ c }}{{ d }}{% set e = 1, 2 %}{{ e }}
{% set t %}body {{ name }}{% endset %}[{{ t }}]{% set u | upper | replace('N', 'm') %}ann{% endset %}[{{ u }}]
{% macro m(a, b='B', c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 2) }}|{{ m(b=3, a='x') }}|{{ m() }}|{{ m(1, c=5) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}
{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}late{% endmacro %}{{ a() }}
{% set v = 1 %}{% macro a() %}{{ v }}{% endmacro %}{% set v = 2 %}{{ a() }}
{% macro wrap(tag) %}<{{ tag }}>{{ caller() }}</{{ tag }}>{% endmacro %}{% call wrap('b') %}in {{ name }}{% endcall %}
{% macro each(list) %}{% for x in list %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(item, i) each(words) %}{{ i }}.{{ item }} {% endcall %}
{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}
{% filter upper %}shout {{ name }}{% endfilter %} {% filter replace('a', 'o') | trim %}  banana {% endfilter %}|
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}{% with %}{% set z = 1 %}{% endwith %}{{ z is defined }}
{% raw %}{{ not }} {% this %}{% endraw %}|{%- raw -%}  x  {%- endraw -%}  |
{# comment #}a{#- tight -#}  b {# end #}c
{% if yes %}A{% elif no %}B{% else %}C{% endif %}{% if no %}A{% elif yes %}B{% else %}C{% endif %}{% if no %}A{% elif no %}B{% else %}C{% endif %}
{% if 1, 2 %}tuple{% endif %}{% if [] %}x{% endif %}{% if {} %}x{% endif %}{% if '' %}x{% endif %}{% if 0.0 %}x{% endif %}done
{{ ' x '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ 5|trim }}|{{ '\u00a0\u2003a\u3000'|trim }}
{{ name|upper }} {{ name|lower }} {{ 'hELLO wORLD'|capitalize }} {{ "foo-bar (baz) it's"|title }} {{ uni|upper }} {{ uni|lower }} {{ uni|title }}
{{ words|join }} {{ words|join(', ') }} {{ [1, none, 'a']|join('-') }} {{ people|join('/', attribute='name') }} {{ 'abc'|join('.') }}
{{ words|length }} {{ name|length }} {{ uni|length }} {{ map|count }}
{{ 5|length }}
{{ words|first }} {{ words|last }} {{ []|first }}|{{ 'abc'|first }} {{ 'abc'|last }}
{{ 'a-b-a'|replace('a', 'x') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 'abc'|replace('', '-') }} {{ 123|replace(2, 'x') }}
{{ missing|default('d') }} {{ none|default('d') }} {{ none|default('d', true) }} {{ ''|d('e', boolean=true) }} {{ 0|default(1) }}
{{ words|sort }} {{ words|sort(reverse=true) }} {{ words|sort(case_sensitive=true) }} {{ numbers|sort }} {{ people|sort(attribute='name')|map(attribute='name')|list }}
{{ [1, 'a']|sort }}
{{ words|unique|list }} {{ words|unique(case_sensitive=true)|list }} {{ [1, 1.0, true, 2]|unique|list }}
{{ words|reverse|list }} {{ name|reverse }} {{ map|dictsort }} {{ map|dictsort(true) }} {{ {'x': 2, 'y': 1}|dictsort(by='value') }} {{ {'x': 2, 'y': 1}|dictsort(reverse=true) }}
{{ numbers|min }} {{ numbers|max }} {{ numbers|sum }} {{ []|max }}|{{ []|sum }} {{ people|map(attribute='age', default=0)|sum }} {{ numbers|sum(start=10) }} {{ words|max }} {{ words|min }}
{{ people|map(attribute='name')|list }} {{ words|map('upper')|list }} {{ words|map('replace', 'a', 'o')|join(' ') }} {{ people|map(attribute='tags.x', default='-')|list }}
{{ numbers|map('string')|join }} {{ words|map('length')|list }} {{ [[1, 2], [3]]|map('first')|list }} {{ nested|map(attribute=0)|list }}
{{ numbers|select('odd')|list }} {{ numbers|reject('odd')|list }} {{ [0, 1, '']|select|list }} {{ numbers|select('>', 1)|list }} {{ numbers|select('in', [1, 2])|list }}
{{ people|selectattr('age')|map(attribute='name')|list }} {{ people|rejectattr('age', 'defined')|map(attribute='name')|list }} {{ people[:2]|selectattr('age', 'gt', 26)|list|length }}
{{ people|selectattr('age', 'gt', 26)|list|length }}
{{ people|selectattr('name', 'equalto', 'Cy')|first|tojson }} {{ people[:1]|selectattr('tags.x', 'eq', 1)|list|length }}
{{ people|selectattr('tags.x.y')|list|length }}
{{ '42'|int }} {{ ' 42 '|int }} {{ '4.7'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ 4.7|int }} {{ -4.7|int }} {{ 'ff'|int(0, 16) }} {{ none|int }} {{ true|int }} {{ '-5'|int }} {{ '+5'|int }}
{{ '1.5'|float }} {{ 'x'|float }} {{ 2|float }} {{ none|float }} {{ '1e3'|float }}
{{ 5|string ~ 1.5|string }} {{ none|string }} {{ [1]|string }} {{ -5|abs }} {{ 1.5|abs }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.567|round(2) }} {{ 3|round }} {{ 2.1|round(0, 'ceil') }} {{ 2.9|round(method='floor') }} {{ 1234.5|round(-2) }}
{{ text|indent }}|{{ text|indent(2, true) }}|{{ 'a\n\nb'|indent(1) }}|{{ 'a\n\nb'|indent(1, blank=true) }}|{{ 'a\nb'|indent('> ') }}|{{ ''|indent }}
{{ '<a href="x">\'&'|escape }} {{ '<b>'|e }} {{ '<b>'|safe }}
{{ map|tojson }} {{ [1, 1.0, 1e22, none, true, 'é"\\\n\t\u0001\u007f/<>&\'']|tojson }} {{ {}|tojson }} {{ []|tojson }} {{ 'x'|tojson }}
{{ big }} {{ big|tojson }} {{ bigs|tojson(indent=1) }} {{ {big: bigs[0]}|tojson }} {{ bigs }} {{ big|string|length }} {{ bigs|pprint }}
{{ big is number }} {{ big is integer }} {{ big is float }} {{ big == bigs[1] }} {{ big in [big] }} {{ {big: 1}[big] }} {{ big == 123456789 }}
{{ bigs|sort }} {{ bigs|max }} {{ bigs|min }} {{ big > 5 }} {{ bigs[0] < -5 }} {{ big > bigs[1] }} {{ 1.5 < big }} {{ bigs[2] != bigs[1] }}
{{ big|int }} {{ big|float }} {{ bigs[0]|abs }} {{ big|abs }} {{ big|round|int }} {{ big / 10 }} {{ big * 1.0 }} {{ 'x' if big else 'y' }} {{ big ~ 'a' }}
{{ tool|pprint }}
{{ pages|pprint }}
{{ pages[0]|pprint }}|{{ pages[1]|pprint }}|{{ pages[2]|pprint }}|{{ pages[3]|pprint }}|{{ pages[4]|pprint }}
{{ {'k': pages[0], 'l': {'m': (pages[1],), 'n': [pages[2]]}}|pprint }} {{ (('a' * 90,), [], {}, (), '')|pprint }}
{{ {2: 'two', 1: 'one', 'z': 0, none: 1, 1.5: 2, (1, 2): 3}|pprint }} {{ range(27)|list|pprint }} {{ range(26)|list|pprint }}
{{ missing|pprint }} {{ none|pprint }} {{ 1.0|pprint }} {{ 'a'|pprint }} {{ '<b>'|escape|pprint }} {{ map|pprint }} {{ ('y' * 77)|pprint }}
{{ ('y ' * 39)|pprint }} {{ ('y ' * 40)|pprint }} {{ ['y ' * 37, 'y ' * 38, 'y ' * 39]|pprint }} {{ ('a' * 60 ~ ' ' ~ 'b' * 60)|pprint }}
{{ map|tojson(indent=2) }} {{ []|tojson(indent=2) }} {{ nested|tojson(indent=1) }} {{ {'a': {}}|tojson(indent=4) }}
{{ uni|tojson }} {{ uni|tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }} {{ [1, {'a': 2}]|tojson(separators=(',', ':')) }} {{ {'b': [1, 2]}|tojson(indent=2, separators=(', ', '= ')) }}
{{ {1: 'a', true: 'b', none: 'c', 1.5: 'd'}|tojson }}
{{ '%s is %d and %.2f%%'|format('x', 3, 2.5) }} {{ '%s-%s' % (1, 'b') }} {{ '%s' % 'z' }} {{ '%r' % 'z' }}
{{ '%d'|format('x') }}
{{ '%s %s'|format('x') }}
{{ [1, 2, 3, 4, 5]|batch(2)|list }} {{ [1, 2, 3]|batch(2, 'x')|list }} {{ map|items|list }} {{ missing|items|list }} {{ name|attr('zzz') }}|
{{ name|list }} {{ map|list }}
{{ 5|list }}
{{ 'Hello World'.upper() }} {{ 'Hello'.lower() }} {{ 'hello world'.title() }} {{ "it's ok".title() }} {{ 'hELLO'.capitalize() }} {{ uni.title() }} {{ uni.upper() }} {{ 'straße ŒUVRE'.capitalize() }}
[{{ '  x '.strip() }}] [{{ '  x '.lstrip() }}] [{{ '  x '.rstrip() }}] [{{ 'xyaxy'.strip('xy') }}] [{{ '\n\nq\n'.strip('\n') }}] [{{ 'éaé'.strip('é') }}] [{{ 'abc'.strip('') }}]
{{ 'a b  c'.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ ' a b c '.split(none, 1) }} {{ ' a b c '.rsplit(none, 1) }} {{ 'a--b'.split('--')[-1] }}
{{ text.splitlines() }} {{ 'a\r\nb\n'.splitlines(true) }} {{ 'a\n'.split('\n') }}
{{ 'a'.split('') }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abc'.startswith('') }} {{ 'abc'.endswith('abcd') }}
{{ 'aXbX'.replace('X', '-') }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'abc'.find('c') }} {{ 'héc'.find('c') }} {{ 'abc'.find('z') }} {{ 'abcb'.rfind('b') }} {{ 'abc'.index('b') }} {{ 'banana'.count('an') }} {{ 'abc'.count('') }}
{{ 'abc'.index('z') }}
{{ ', '.join(words) }} {{ '-'.join('abc') }}
{{ ','.join([1]) }}
{{ '12'.isdigit() }} {{ '1a'.isdigit() }} {{ ''.isdigit() }} {{ 'ab'.isalpha() }} {{ 'é'.isalpha() }} {{ 'a1'.isalnum() }} {{ ' \t'.isspace() }} {{ 'AB'.isupper() }} {{ 'aB'.islower() }} {{ 'a1'.islower() }} {{ '1'.isupper() }} {{ '²'.isdigit() }}
{{ '7'.zfill(3) }} {{ '-7'.zfill(3) }} [{{ 'ab'.center(5) }}] [{{ 'abc'.center(6) }}] {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('z') }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }}
{{ words.index('fig') }} {{ words.count('fig') }} {{ (1, 2, 1).count(1) }}
{{ words.index('zzz') }}
{{ words.append('x') }}
{{ map.update({'x': 1}) }}
{{ map.pop('a') }}
{{ name.__class__ }}|{{ [].__class__ is defined }}|{{ map.__len__ }}|
{{ name.__class__.__mro__ }}
{{ ''.__class__() }}
{{ 1 is number }} {{ 1.5 is number }} {{ true is number }} {{ '1' is number }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ true is boolean }} {{ none is none }} {{ 'x' is string }} {{ map is mapping }} {{ words is mapping }}
{{ words is iterable }} {{ 'x' is iterable }} {{ 5 is iterable }} {{ missing is iterable }} {{ words is sequence }} {{ map is sequence }} {{ 5 is sequence }} {{ namespace is callable }} {{ name is callable }}
{{ 3 is odd }} {{ 3 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 2 is ge 2 }} {{ 1 is in [1, 2] }} {{ 1 is not in [2] }} {{ none is sameas none }} {{ 1 is sameas true }}
{{ true is true }} {{ 1 is true }} {{ false is false }} {{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'aB' is not upper }} {{ 'upper' is filter }} {{ 'zzz' is filter }} {{ 'odd' is test }}
{{ 'x' is odd }}
{{ range(3)|list }} {{ range(1, 4)|list }} {{ range(10, 0, -3)|list }} {{ range(0)|list }} {{ dict(a=1, b='x') }} {{ dict([('k', 'v')])['k'] }} {{ range(3)[1] }}
{{ range(1, 2, 0) }}
{{ range(200000) }}
{{ range('a') }}
{{ strftime_now('%Y-%m-%d') }} {{ strftime_now('%d %b %Y %H:%M:%S') }} {{ strftime_now('%A %j %B %y %I %p') }} {{ strftime_now('') }}
{{ raise_exception('stop ' ~ name ~ ' here') }}
{% if no %}{{ raise_exception('never') }}{% endif %}fine
{{ messages[0].content|trim }} {{ messages|length }} {{ messages|map(attribute='role')|join(',') }} {{ messages[-1]['content'] }} {{ messages == messages[:] }} {{ messages[0] == messages[1] }}
{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}
{{ {'a': 1} == {'a': 1.0} }} {{ [1, [2]] == [1, [2]] }} {{ (1,) == [1] }} {{ 'a' == 1 }} {{ none == false }} {{ {'a': 1}.get('a') }} {{ {'a': 1, 'a': 2} }}
{{ {[1]: 2} }}
{{ 'a' is defined and name is defined and nothing is defined }} {{ nothing is none }} {{ nothing is not none }} {{ people[0].age is defined }}
{{ ['a', 'it"s', "it's", 'both\'"', 'new\nline', 'é', '\u200b', '\x7f', '🦊'] }}
{{ [1.0, -0.0, 1e100, 5e-324, 1.7976931348623157e308] }} {{ 1e15 + 0.5 }} {{ 12345678901234567 }} {{ 0.00001 }} {{ 0.0001 }}
{{ 9223372036854775807 }} {{ -9223372036854775807 }}
{{ (words|first)|upper }} {{ words|first|upper|lower }} {{ -3|abs }} {{ (-3)|abs }} {{ 'a,b'.split(',')|length }} {{ 'x'|upper ~ 'y' }} {{ 'x' ~ 'y'|upper }}
{{ words | length > 3 }} {{ words|length == 4 and name }} {{ 2 * 3|int + 1 }} {{ not words|length > 9 }}
{{ name if name is string and name|length > 2 else 'short' }} {{ (name if no) is defined }} {{ [x if yes else y] if no }}|
{{ foo.bar if foo is defined else 'nofoo' }} {{ people[5].name if people|length > 5 else 'few' }}
{% for p in people if p.age is defined and p.age > 26 %}{{ p.name }}{% endfor %} {% for p in people|sort(attribute='name', reverse=true) %}{{ p.name }}{% endfor %}
{% set parts = 'a/b/c'.split('/') %}{{ parts[-1] }}{{ parts|last }}{% for p in parts %}{{ p }}{{ '>' if not loop.last }}{% endfor %}
{% unknown %}
{% endif %}
{% if yes %}
{% for x in numbers %}{{ x }}
{{ name
{{ name }
{{ }}
{{ 1 + }}
{{ (1 }}
{{ [1, }}
{{ 'abc }}
{{ name | }}
{{ name | nosuchfilter }}
{{ name is nosuchtest }}
{{ name $ }}
{% if no %}{{ name|nosuchfilter }}{% endif %}guarded
{% set = 1 %}
{% set true = 1 %}
{% for in x %}{% endfor %}
{% break %}
{% macro %}{% endmacro %}
{% include 'x' %}
{# open
{% raw %} open
{{ loop }}|{{ loop is defined }}
{{ loop.index }}
{{ words|join(',', 'name', 3) }}
{{ words|nope() if no else 'ok' }} {{ (name is nope) if no else 2 }}
{{ [words|nope] if no else 'ok' }}
{{ words|nope if yes }}
{{ ['{{', '}}', {'}}': '%}'}] }}
{{ namespace().x }}|{{ (namespace(a=1)).a }}
{{ 5 is divisibleby 0 }}
{% macro f(s) %}{{ {'a': 1}[s.type] is defined }} {{ s.type == 'x' }} {{ s.type is iterable }}{% for t in s.type %}{{ t }}{% endfor %}{% endmacro %}{{ f({'a': 1}|items) }}
{% macro keys(d, handled) %}{% if d is mapping %}{% for k in d if k not in handled %}<{{ k }}>{{ d[k] | tojson | safe if d[k] is mapping or (d[k] is sequence and d[k] is not string) else d[k] | string }}</{{ k }}>{% endfor %}{% endif %}{% endmacro %}{{ keys(map, ['b', 'items']) }}{{ keys(people[0], []) }}
{% set pairs = words | reject('equalto', 'fig') | reject('in', ['pear']) | list %}{{ pairs | join(', ') }} {{ words | select('equalto', 'fig') | list | length }} {{ 'fig' in words and 'x' not in words }}
{% for k, v in map|items %}{{ k | replace('b', '-') | replace(' ', '_') }}={{ v if v is string else v | tojson }}{{ ',' if not loop.last }}{% endfor %}{{ missing|items|list }}
{% set ns = namespace(first=false, text='', seen=[]) %}{% for p in people %}{% set ns.text = ns.text + p['name'] + (';' if not loop.last else '') %}{% set ns.seen = ns.seen + [p.name] %}{% if not ns.first %}{% set ns.first = true %}{% endif %}{% endfor %}{{ ns.text }} {{ ns.seen }} {{ ns.first }} {{ ns.nope is defined }}
{{ ('a</think>b</think> c'.split('</think>')|last).lstrip('\n') }}|{{ ('<think>\nx\n</think>\n\ny'.split('</think>')|first).rstrip('\n').split('<think>')|last }}|{{ 'no marks'.split('</think>')[-1] }}
{{ messages[::-1][0].role }} {{ messages[:1][0]['role'] }} {{ (messages|length - 1) - 0 }} {{ messages[-1:]|map(attribute='content')|first }} {{ messages|map(attribute='role')|unique|list }}
{% if messages[0]['tools'] is defined and messages[0]['tools'] is not none %}a{% elif 'tools' in messages[0] %}b{% elif messages[0].tools %}c{% else %}d{% endif %}
{% generation %}{% set inside = 1 %}[{{ name }}{{ inside }}]{% endgeneration %}{{ inside is defined }}{% for m in messages %}{% generation %}{{ m.role }}{{ ' ' }}{% endgeneration %}{% endfor %}
{% macro wrap(role) %}<{{ role }}>{{ caller() }}</{{ role }}>{% endmacro %}{% for m in messages %}{% call wrap(m.role) %}{{ m.content | trim }}{% endcall %}{% endfor %}
{% set date = strftime_now('%B %d, %Y') %}{{ date }} {{ strftime_now('%d-%m-%Y %H:%M:%S %a %b %j') }} {{ strftime_now is defined }}
{{ {'name': name, 'arguments': {'q': 'ü "<&>"', 'n': [1, 2.0, none, true]}} | tojson }} {{ {'b': 1, 'a': 2} | tojson(indent=2) }} {{ [] | tojson(indent=4) }} {{ 'é' | tojson(ensure_ascii=true) }}
{{ none|select|list }} {{ none|reject('odd')|list }} {{ none|selectattr('a')|list|length }} {{ none|rejectattr('a')|list }} {{ none|map('upper')|list }} {{ 0|map(attribute='x')|list }} {{ false|select|list }}
{{ 5|select|list }}
{{ '{}'.format(1) }} {{ '{} {}'.format('a', none) }} {{ '{1}{0}{1}'.format('a', 'b') }} {{ '{x}-{y}'.format(x=1, y=[2]) }} {{ '{{}}{}'.format('z') }} {{ '{0.name} {0[name]}'.format(people[0]) }} {{ '{0[1]}'.format(words) }}
{{ '{:>5}|{:<5}|{:^5}|{:*^7}|{:5}|{:5}|'.format('a', 'b', 'c', 'd', 'e', 6) }} {{ '{:.2}'.format('abc') }} {{ '{!r:>6}'.format('q') }} {{ '{!s}'.format(1.5) }}
{{ '{:05d} {:+d} {: d} {:x} {:#X} {:o} {:#b} {:,} {:_}'.format(42, 7, 7, 255, 255, 8, 5, 1234567, 1234567) }} {{ '{:c}'.format(65) }} {{ '{:d}'.format(true) }} {{ '{:=+6d}'.format(5) }} {{ '{:<6d}|'.format(-5) }}
{{ '{:.2f} {:8.3f} {:+.1e} {:g} {:%} {:.1%} {:,.2f} {:06.2f} {:G}'.format(3.14159, 2.5, 12345.678, 0.0001, 0.5, 0.256, 1234567.891, -1.5, 1e20) }} {{ '{:.3}'.format(3.14159) }} {{ '{:10}|'.format(1.5) }} {{ '{:.1f}'.format(2) }} {{ '{:e}'.format(3) }}
{{ '{:{}}|{:{w}.{p}f}'.format('a', 4, 1.5, w=7, p=2) }}
{{ '{}'.format() }}
{{ '{0} {}'.format(1, 2) }}
{{ '{'.format(1) }}
{{ '}'.format(1) }}
{{ '{:d}'.format('x') }}
{{ '{:s}'.format(5) }}
{{ '{:5}'.format(none) }}
{{ '{:.2d}'.format(5) }}
{{ '{x}'.format(1) }}
{{ '{:q}'.format(1) }}
{{ '%5d|%-5d|%05d|%+d|% d|%x|%X|%#x|%o' % (42, 42, 42, 42, 42, 255, 255, 255, 8) }} {{ '%8.3f|%-8.1f|%e|%g|%G' % (3.14159, 2.5, 12345.678, 0.0001, 1e20) }} {{ '%5s|%-5s|%.2s|%c|%c' % ('a', 'b', 'xyz', 'q', 65) }} {{ '%(a)s %(b)03d' % {'a': 'x', 'b': 7} }} {{ '%s' % {'a': 1} }} {{ '%.3d' % 5 }} {{ '%ld' % 5 }}
{{ '%(a)s-%(b)s'|format(a=1, b='two') }}
{{ '%s'|format(1, a=2) }}
{{ '%(a)s' % 1 }}
{{ '%x' % 1.5 }}
{{ dict(**{'a': 1}) }} {{ dict({'z': 0}, **{'a': 1}) }} {{ range(*[1, 4])|list }} {% macro m(a, b=2, c=3) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(*[1, 5]) }}{{ m(1, **{'c': 9}) }}{{ m(*(7,), b=8) }}{{ m(*[1], **{'b': 4, 'c': 6}) }}
{{ 'a-b-c'.split(*['-', 1]) }} {{ words|join(**{'d': '+'}) }} {{ 'x'|replace(*['x', 'y']) }} {{ 4 is divisibleby(*[2]) }} {{ dict(a=1, **{'b': 2}) }}
{{ dict(**{'a': 1}, b=2) }}
{{ dict(a=1, **{'a': 2}) }}
{{ m(*[1], *[2]) }}
{{ m(*[1], 2) }}
{{ dict(**5) }}
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }} {{ m(1, 2, 3) }} {{ m(1, 2, x=5) }} {{ m(*[1, 2, 3], **{'k': 'v'}) }}
{% macro m(a) %}{{ varargs|join('-') }}{% endmacro %}{{ m(1, 2, 3) }}{{ m(1, x=2) }}
{{ "a" | safe + "<b>" }} {{ '<i>' + ('<b>'|safe) }} {{ ('<b>'|safe) ~ '<i>' }} {{ '<b>'|e|e }} {{ '<b>'|e|forceescape }} {{ '<b>'|safe|e }} {{ '<b>'|safe is escaped }} {{ '<b>' is escaped }} {{ 5 is escaped }}
{% set s = '<b>%s</b>'|safe %}{{ s % '<i>' }} {{ s|format('&') }} {{ s % ('<i>'|safe) }} {{ '<p>{}</p>'|safe + 'x' }} {{ ('<p>{}</p>'|safe).format('<') }} {{ ('<p>{:>4}</p>'|safe).format('<') }}
{{ ('<x>'|safe).upper() + '<' }} {{ ('a b'|safe).split()[0] + '<' }} {{ ('<x>'|safe)[1:] + '<' }} {{ ('<x>'|safe)[0] + '>' }} {{ ('<x>'|safe).replace('x', '<y>') }} {{ (', '|safe).join(['<', 'a'|safe]) }} {{ ('a<b'|safe).partition('<') }} {{ ('<x>'|safe) * 2 + '<' }}
{{ ('<x>'|safe)|upper + '<' }} {{ ('<x>'|safe)|lower + '<' }} {{ (' <x> '|safe)|trim + '<' }} {{ ('<x>'|safe)|string + '<' }} {{ ('<x>'|safe)|title + '<' }} {{ ('<x>'|safe)|replace('x', '<') + '<' }} {{ ('<x>'|safe)|first + '<' }} {{ ('<x>'|safe)|reverse + '<' }} {{ ('<x>'|safe)|capitalize + '<' }} {{ ('<x>'|safe)|tojson }} {{ ['<x>'|safe, '<']|join('&') }} {{ ('<x>'|safe)|length }} {{ ('<x>'|safe) == '<x>' }} {{ ('<x>'|safe)|center(7) + '<' }} {{ ('<a b c d e>'|safe)|truncate(6, leeway=0, end='<') }}
{{ 'one two three four'|truncate(11, leeway=0) }} {{ 'one two three four'|truncate(11, true, leeway=0) }} {{ 'one two'|truncate(5) }} {{ 'foo bar baz qux'|truncate(9) }} {{ 'foo bar baz qux'|truncate(9, true) }} {{ 'foo bar baz qux'|truncate(11) }} {{ 'foo bar baz qux'|truncate(11, false, '...', 0) }} {{ uni|truncate(5, end='…', leeway=0) }} {{ 'abcdefghij'|truncate(3, leeway=0) }}
{{ 'abc'|truncate(2) }}
{{ 'one two, three-four it_s'|wordcount }} {{ ''|wordcount }} {{ uni|wordcount }} {{ 5|wordcount }} [{{ 'ab'|center(6) }}] [{{ 'ab'|center(5) }}] [{{ 'abc'|center(6) }}] {{ ('x'|center)|length }}
{% for g in people|groupby('age', default=0) %}{{ g.grouper }}:{{ g.list|map(attribute='name')|join(',') }} {% endfor %}{% for k, v in [{'c': 'b', 'n': 1}, {'c': 'A', 'n': 2}, {'c': 'a', 'n': 3}]|groupby('c') %}{{ k }}={{ v|map(attribute='n')|list }} {% endfor %}{{ [{'c': 1}]|groupby('c') }} {{ ([{'c': 1}]|groupby('c'))[0][0] }} {{ [{'c': 'A'}, {'c': 'a'}]|groupby('c', case_sensitive=true)|length }}
{{ [1, 2, 3, 4, 5]|slice(3)|list }} {{ [1, 2, 3, 4]|slice(3, 'x')|list }} {{ []|slice(2)|list }} {{ 'abcd'|slice(2)|list }}
{{ 'a b/ü?&=é~._-'|urlencode }} {{ {'a b': 'c/d', 'e': 1}|urlencode }} {{ [('x', 'y z'), ('q', '&')]|urlencode }} {{ 5|urlencode }}
<p{{ {'class': 'a "b"', 'id': 5, 'no': none}|xmlattr }}> <p{{ {}|xmlattr }}> <p{{ {'a': '<'}|xmlattr(false) }}>
{{ '1f'|int(base=16) }} {{ '0x1f'|int(base=16) }} {{ '0x1F'|int(0, 16) }} {{ '0b101'|int(base=2) }} {{ '0o17'|int(base=8) }} {{ '0x1f'|int(base=0) }} {{ '017'|int(9, 0) }} {{ '-0x1f'|int(base=16) }} {{ 'zz'|int(base=36) }} {{ '1_000'|int }} {{ '1__0'|int(7) }} {{ '0x1f'|int }} {{ '12.5'|int(base=16) }} {{ '+ 5'|int(3) }} {{ '--5'|int(3) }} {{ '_5'|int(3) }}
{{ {(1, 2): 'a', (1, (2, 3)): 'b'}[(1, 2)] }} {{ {(1, 2): 'a'} }} {{ (1, 2) in {(1, 2): 'a'} }} {{ {(1,): 'a'}.get((1.0,)) }} {{ {'1': 'a'}.get((1,), 'none') }} {{ [(1, 2), (2, 1), (1, 2)]|unique|list }} {{ {'a': 1}[(1, 2)] is defined }}
{{ {[1]: 2} }}
{{ {(1, [2]): 2} }}
{{ {(1, 2): 3}|tojson }}
{{ words[] is defined }} {{ {(): 'empty'}[] }}
{% set c = cycler('a', 'b', 'c') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}{% set j = joiner() %}|{{ j() }}x{{ j() }}y{{ j() }}{% set k = joiner('; ') %}|{{ k() }}x{{ k() }}y
{{ cycler() }}
{{ [] | map('upper') | tojson }}
{{ words | map('upper') | length }}
{{ words | select | tojson }}
{{ words | unique | length }}
{{ (words | map('upper'))[0] is defined }} {{ words|map('upper') is sequence }} {{ words|map('upper') is iterable }} {{ [] is sequence }} {{ {'a': 1}.items() is sequence }} {{ {'a': 1}.items()|length }} {{ words|map('upper')|first }} {{ words|map('upper')|list|last }}
{{ (words | map('upper'))[1:] }}
{{ words | map('upper') | last }}
{{ {'a': 1}.items() | tojson }}
{{ {'a': 1}.items()[0] is defined }} {{ {'a': 1}.items() }} {{ {'a': 1}.keys() }} {{ {'a': 1}.values() }} {{ {}.items() }} {{ {'a': 1}.keys()|first }} {{ {'a': 1, 'b': 2}.keys()|last }} {{ 'yes' if {}.items() else 'no' }}
{{ 'yes' if []|select else 'no' }} {{ 'yes' if []|map('upper') else 'no' }} {{ 'yes' if [] else 'no' }} {{ 'yes' if []|unique else 'no' }} {{ 'yes' if []|reverse else 'no' }} {{ 'yes' if []|batch(2) else 'no' }} {{ 'yes' if []|sort else 'no' }} {{ 'yes' if {}|items else 'no' }}
{% set g = words|map('upper') %}{{ g|first }} {{ g|list }} {{ g|list }}|{% for x in words|map('upper') %}{{ loop.length }}{{ loop.last }} {% endfor %}{{ 'FIG' in words|map('upper') }}
{{ words|reverse|first }} {{ words|reverse|reverse|first }} {{ words|map('upper')|reverse|length }} {{ words|map('upper')|sort }} {{ words|map('upper')|join('-') }} {{ numbers|map('abs')|sum }} {{ numbers|map('abs')|max }}
{{ words|reverse|length }}
{{ [1] + (words|map('upper')) }}
{{ words.index|string|length > 0 }} {{ (words|list).count('fig') }}
{{ '\u007f\u0080é\U0001F600'|tojson(ensure_ascii=true) }} {{ '\u007f'|tojson }}
""".strip("\n").split("\n")

# What lines cannot show: newlines and the dashes around tags.
SNIPPETS += [
    "a\n  {% if true %}\nb\n  {% endif %}\nc\n",
    "a\n  {%- if true -%}\n b \n{%- endif -%}\n c",
    "a\n  {%+ if true %}\nb\n  {%+ endif %}\nc",
    "a {% if true +%}\nb{% endif +%}\nc",
    "  {{ 1 }}  \n  {{- 2 -}}  \n  {{ 3 }}\n",
    "  {# c #}\nx\n  {#- d -#}\ny\n{#+ e #}\nz",
    "{% for x in [1, 2] %}\n  {{ x }}\n{% endfor %}\nend\n",
    "{% for x in [1, 2] -%}\n  {{ x }}\n{%- endfor %}\nend\n\n",
    "\n\n{% if true %}\n\nx\n\n{% endif %}\n\n",
    "x{% if true %}   \ny{% endif %}   \nz",
    "\t{% if true %}\n\t\ty\n\t{% endif %}\n",
    "a\r\n{% if true %}\r\nb\r{% endif %}\r\nc\r\n",
    "{% set x = 1 %}\n{% set y = 2 %}\n{{ x + y }}\n",
    "{% macro m() %}\n  in\n{% endmacro %}\n[{{ m() }}]",
    "{% macro m() -%}\n  in\n{%- endmacro -%}\n[{{ m() }}]",
    "{% raw %}\n {{ x }} \n{% endraw %}\nafter",
    "a {%- raw %} b {% endraw -%} c",
    "  {% raw %}x{% endraw %}\n  y",
    "{{ 'a' }}\n{{ 'b' }}\n",
    "{{ 'multi\nline' }}",
    "{% if\n true\n%}\nx\n{% endif %}",
    "{{\n  name\n  | upper\n}}",
    "{% set long = 'a' ~\n  'b' %}{{ long }}",
    "line1 {# c1 #} {# c2 #}\nline2",
    "{#\n multi\n line\n#}\nx",
    "}} %} #} { % {",
    "{% call m() %}{% endcall %}",
    "{% filter nosuch %}{% endfilter %}",
    "{% set x %}\n  block\n{% endset %}\n[{{ x }}]",
    "{% for x in [1,2,3] %}{% if x == 2 %}\n{% continue %}\n{% endif %}\n {{ x }}\n{% endfor %}",
    "{%for x in [1]%}{{x}}{%endfor%}{%if 1%}y{%endif%}",
    "{{'a'}}{{\"b\"}}{{-1}}{{+1}}{{- 1 }}",
    "",
    "\n",
    "plain",
]
