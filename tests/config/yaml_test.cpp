// Configuration files: where values come from and what is refused.
#include "tests/config/loading.hpp"

#include <doctest/doctest.h>

using namespace lamella::config;
using namespace lamella::config::test;

TEST_CASE("bad values are refused with their position, value and allowed range") {
  struct row {
    const char* text;    ///< what follows `version: 1`
    const char* message; ///< `line:column: key: message`, or a part of it
  };
  const row rows[] = {
      {"http: {listen: 8000}", "2:16: http.listen: '8000' is not an address"},
      {"http: {max_body_bytes: 0}", "'0' is out of range (allowed: 1KiB to 1GiB)"},
      {"http: {max_body_bytes: -1}", "'-1' is not a number of bytes"},
      {"http: {max_body_bytes: 16MX}", "'16MX' is not a number of bytes"},
      {"http: {max_body_bytes: 1e400}", "'1e400' is not a number of bytes"},
      {"http: {max_body_bytes: nan}", "'nan' is not a number of bytes"},
      {"http: {max_body_bytes: .inf}", "'.inf' is not a number of bytes"},
      {"http: {max_body_bytes: 1.5}", "'1.5' is not a number of bytes"},
      {"http: {max_body_bytes: [1]}", "must be a single value (allowed: 1KiB to 1GiB)"},
      {"http: {max_body_bytes: {a: 1}}", "must be a single value"},
      {"http: {max_body_bytes: }", "has no value (allowed: 1KiB to 1GiB)"},
      {"http: {sse_ping_seconds: 2d}", "'2d' is not a number of seconds"},
      {"http: {sse_ping_seconds: 3601}", "(allowed: 0 to 3600)"},
      {"http: {sse_ping_seconds: 0.0001}", "is not a number of seconds"},
      {"http: {probes: yes}", "'yes' is not true or false"},
      {"http: {probes: 1}", "'1' is not true or false"},
      {"http: {probes: }", "has no value"},
      {"http: 3", "http: must be a map of options"},
      {"http: [a]", "http: must be a map of options"},
      {"http: {cors_origins: [chat.example.org]}",
       "http.cors_origins: 'chat.example.org' does not begin with a lower-case scheme"},
      {"http: {cors_origins: [\"*\", \"https://x/\"]}", "has a path: an origin is scheme, host"},
      {"http: {cors_origins: [\"https://X\"]}", "has a capital letter"},
      {"http: {cors_origins: [*]}", "a text that begins with * needs quotes"},
      {"http: {cors_origins: [*.example.org]}", "a text that begins with * needs quotes"},
      {"limits: {max_n: 0}", "limits.max_n: '0' is out of range (allowed: 1 to 128)"},
      {"limits: {max_n: 129}", "(allowed: 1 to 128)"},
      {"limits: {max_n: 8.0}", "'8.0' is not a whole number"},
      {"limits: {max_n: 0x8}", "'0x8' is not a whole number"},
      {"limits: {max_n: 99999999999999999999}", "is not a whole number"},
      {"limits: {max_n: auto}", "'auto' is not a whole number"},
      {"limits: {max: 1}", "limits.max: is not a known key"},
      {"kv: {dtype: f61}", "'f61' is not one of f16, f32, bf16, q8 or q4; did you mean f16?"},
      {"kv: {bytes: all}", "(allowed: 1MiB to 64TiB or auto)"},
      {"kv: {bytes: 16777216TiB}", "'16777216TiB' is"},
      {"numerics: {operators: avx}",
       "'avx' is not one of auto, reference, portable, avx2, avx512 or amx"},
      {"batching: {pipeline: rotating}", "is not one of fixed, rotational, off or auto"},
      {"log: {level: verbose}", "is not one of error, warn, info, debug or trace"},
      {"model: {name: \"a b\"}", "contains a space"},
      {"model: {name: \"a\\u0007\"}", "control character"},
      {"model: {aliases: small}", "must be a list, such as [a, b]"},
      {"model: {aliases: [a, [b]]}", "must be a list of texts"},
      {"model: {aliases: [a, \"\"]}", "has an empty item"},
      {"model: {name: a, aliases: [a]}", "the name a is given twice"},
      {"pools: {model: {device: gpu}}", "'gpu' is not a device: use auto, host or cuda:N"},
      {"pools: {model: {members: 0}}", "(allowed: 1 to 64)"},
      {"pools: {attention: {cells: 3}}", "must be a map of options"},
      {"pools: {attention: {cells: {East: {}}}}",
       "the name of a cell does not start with a letter"},
      {"pools: {attention: {cells: {a-b: {}}}}", "may only have a to z, 0 to 9 and _"},
      {"pools: {attention: {cells: {a: 1}}}", "must be a map of options of an attention pool"},
      {"pools: {attention: {cells: {a: {tensor_parallel: 2}}}}", "is not a known key"},
      {"pools: {attention: {cells: {a: {cells: {}}}}}", "is not a known key"},
      {"http.listen: 127.0.0.1:1", "is not a known key"},
      {"[a, b]", "is not YAML"},
      {"1", "is not"},
  };
  const scratch_folder folder;
  for (const auto& x : rows) {
    CAPTURE(x.text);
    const auto got = load_text(folder, std::string{"version: 1\n"} + x.text + "\n");
    CAPTURE(all_of(got));
    CHECK_FALSE(got.problems.empty());
    CHECK(says(got, x.message));
  }
}

TEST_CASE("all problems are told at once, each with line and column") {
  const scratch_folder folder;
  const auto got = load_text(folder, "version: 1\n"
                                     "http:\n"
                                     "  lisen: 127.0.0.1:1\n"
                                     "  max_body_bytes: 12\n"
                                     "logs:\n"
                                     "  level: info\n"
                                     "limits:\n"
                                     "  max_n: many\n"
                                     "pools:\n"
                                     "  attention:\n"
                                     "    partition: requests\n"
                                     "    placement: local\n"
                                     "    parity: true\n");
  const std::string file = (folder.path() / "lamella.yaml").string();
  std::vector<std::string> texts;
  for (const auto& x : got.problems) texts.push_back(x.text() + " | " + x.hint);
  const std::vector<std::string> expected{
      file + ":3:3: http.lisen: is not a known key | did you mean http.listen?",
      file + ":4:19: http.max_body_bytes: '12' is out of range (allowed: 1KiB to 1GiB) | ",
      file + ":5:1: logs: is not a known key | did you mean log?",
      file + ":8:10: limits.max_n: 'many' is not a whole number (allowed: 1 to 128) | ",
      file
          + ":13:5: pools.attention.parity, pools.attention.partition: parity needs partition: "
            "heads, where "
            "all shards write the same slot; here it is requests | set partition: heads or "
            "parity: false",
  };
  CHECK(texts == expected);
}

TEST_CASE("a key in the wrong section is told where it belongs") {
  const scratch_folder folder;
  CHECK(says(load_text(folder, "version: 1\nhttp: {max_n: 2}\n"), "did you mean limits.max_n?"));
  CHECK(says(load_text(folder, "version: 1\nbatch: {max_batch: 2}\n"), "did you mean batching?"));
  auto from = folder.nothing();
  from.set = {"pools.atention.members=2"};
  CHECK(says(load(from), "did you mean pools.attention.members?"));
  from.set = {"nothing.at.all=2"}; // no such section: those that there are
  CHECK(says(load(from), "known here: admin, "));
  CHECK(says(load_text(folder, "version: 1\nchaos: {zzzzzzzzz: 2}\n"), "known here: enabled"));
}

TEST_CASE("what could expand or be read in two ways is refused") {
  const scratch_folder folder;
  CHECK(says(load_text(folder, "version: 1\nlog: &x {level: info}\n"), "2:6: anchors"));
  CHECK(says(load_text(folder, "version: 1\nlog: &x {level: info}\napi: *x\n"), "3:6: aliases"));
  CHECK(says(load_text(folder, "version: 1\nlog: {level: !!str info}\n"), "tags (!name)"));
  CHECK(says(load_text(folder, "version: 1\nlog: !x {level: info}\n"), "tags (!name)"));
  CHECK(says(load_text(folder, "version: 1\nlog: {level: info, level: warn}\n"), "is given twice"));
  CHECK(says(load_text(folder, "version: 1\nlog: {level: info}\nlog: {level: warn}\n"),
             "3:1: the key log is given twice; first in line 2"));
  CHECK(says(load_text(folder, "version: 1\n---\nversion: 1\n"), "second document"));
  CHECK(says(load_text(folder, "version: 1\n? [a]\n: b\n"), "a key must be a plain word"));
  CHECK(says(load_text(folder, "version: 1\nlog: {level: info\n"), "is not YAML"));
  CHECK(says(load_text(folder, "version: 1\nlog:\n\tlevel: info\n"), "only spaces can indent"));
  CHECK(says(
      load_text(folder, "version: 1\npools:\n  model:\n    replicas: 2\n    members: 3\n"),
      "4:5: pools.model.replicas: is another name of pools.model.members, and both are given"));
  const std::string bomb =
      "version: 1\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
      "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n";
  CHECK(load_text(folder, bomb).problems.size() > 20); // linear: one for each anchor and alias
}

TEST_CASE("depth and length have limits") {
  const scratch_folder folder;
  const auto nested = [](size_t levels) {
    return "version: 1\nlog: " + std::string(levels, '[') + std::string(levels, ']') + "\n";
  };
  CHECK_FALSE(says(load_text(folder, nested(15)), "levels"));
  CHECK(says(load_text(folder, nested(16)), "more than 16 levels"));
  CHECK(says(load_text(folder, nested(100'000)), "more than 16 levels"));
  CHECK(load_text(folder, "version: 1\n#" + std::string((1 << 20) - 20, 'x')).problems.empty());
  CHECK(says(load_text(folder, "version: 1\n#" + std::string(1 << 20, 'x')), "longer than 1 MiB"));
}

TEST_CASE("version 1 comes first, and no other version is read") {
  const scratch_folder folder;
  CHECK(load_text(folder, "version: 1\n").problems.empty());
  CHECK(load_text(folder, "# only\nversion: 1 # this\n").problems.empty());
  CHECK(says(load_text(folder, ""), "1:1: version: must be the first key"));
  CHECK(says(load_text(folder, "log: {level: info}\n"), "version: must be the first key"));
  CHECK(says(load_text(folder, "log: {level: info}\nversion: 1\n"), "must be the first key"));
  CHECK(says(load_text(folder, "version: 2\n"), "1:10: version: '2' is not supported"));
  CHECK(says(load_text(folder, "version: [1]\n"), "is not supported"));
}

TEST_CASE("a conf.d that cannot be read is a problem, and none is no problem") {
  const scratch_folder folder;
  CHECK(load_text(folder, "version: 1\n").problems.empty());
  folder.write("conf.d", "not a folder"); // of one without the right to read it as well
  CHECK(says(load_text(folder, "version: 1\n"), "conf.d: cannot be read: Not a directory"));
}

TEST_CASE("later sources win: file, conf.d, environment, --set, flag") {
  const scratch_folder folder;
  auto from = folder.nothing();
  from.file =
      folder.write("lamella.yaml", "version: 1\nlimits: {max_n: 1, best_of: 1, queue_requests: 1, "
                                   "stop_strings: 1, prompts_per_request: 1}\n");
  folder.write("conf.d/20.yaml", "limits: {best_of: 3, queue_requests: 2}\n");
  folder.write("conf.d/10.yaml", "version: 1\nlimits: {best_of: 2, queue_requests: 2}\n");
  folder.write("conf.d/ignored.txt", "limits: {best_of: 9}\n");
  from.environment = {{"LAMELLA_LIMITS__QUEUE_REQUESTS", "3"},
                      {"LAMELLA_LIMITS__STOP_STRINGS", "3"},
                      {"LAMELLA_LIMITS__PROMPTS_PER_REQUEST", "3"}};
  from.set = {"limits.stop_strings=4", "limits.prompts_per_request=4", "limits.stop_strings=5"};
  from.flags = {{"--prompts", "limits.prompts_per_request", "6"}};
  const auto got = load(from);
  CHECK(all_of(got).empty());
  CHECK(got.value.limits.max_n == 1);
  CHECK(got.value.limits.best_of == 3);
  CHECK(got.value.limits.queue_requests == 3);
  CHECK(got.value.limits.stop_strings == 5);
  CHECK(got.value.limits.prompts_per_request == 6);
  CHECK(got.files.size() == 3);
  CHECK(got.origins.at("limits.max_n").text() == (folder.path() / "lamella.yaml").string() + ":2");
  CHECK(got.origins.at("limits.best_of").text()
        == (folder.path() / "conf.d/20.yaml").string() + ":1");
  CHECK(got.origins.at("limits.queue_requests").text() == "LAMELLA_LIMITS__QUEUE_REQUESTS");
  CHECK(got.origins.at("limits.stop_strings").text() == "--set");
  CHECK(got.origins.at("limits.prompts_per_request").text() == "--prompts");
  CHECK_FALSE(got.origins.contains("limits.top_logprobs"));
}

TEST_CASE("lists replace, maps merge, and --set reaches list items and whole sections") {
  const scratch_folder folder;
  auto from = folder.nothing();
  from.file = folder.write("lamella.yaml", "version: 1\nmodel: {name: m, aliases: [a, b]}\n");
  CHECK(load(from).value.model.aliases == std::vector<std::string>{"a", "b"});
  from.set = {"model.aliases=[c]"};
  CHECK(load(from).value.model.aliases == std::vector<std::string>{"c"});
  from.set = {"model.aliases[1]=x", "model.aliases[2]=y"};
  auto got = load(from);
  CHECK(got.value.model.aliases == std::vector<std::string>{"a", "x", "y"});
  CHECK(got.value.model.name == "m");
  from.set = {"limits={max_n: 3, best_of: 4}"};
  got = load(from);
  CHECK(got.value.limits.max_n == 3);
  CHECK(got.value.limits.best_of == 4);
  for (const char* bad : {"model.aliases[9]=x", "model.aliases[x]=x", "model.aliases[0=x",
                          "log[0]=x", "model.aliases[-1]=x", "limits", "=1", "limits.max_nn=1",
                          "nothing=1", "limits=[", "version=1", "limits.max_n=1\nlog"}) {
    CAPTURE(bad);
    from.set = {bad};
    CHECK(load(from).problems.size() == 1);
  }
}

TEST_CASE("values outside of files need no YAML quotes") {
  const scratch_folder folder;
  auto from = folder.nothing();
  from.set = {"http.listen=[::1]:8123", "model.path=/a: b #c", "model.name=\"quoted\""};
  const auto got = load(from);
  CHECK(all_of(got).empty());
  CHECK(got.value.http.listen == "[::1]:8123");
  CHECK(got.value.model.path == "/a: b #c");
  CHECK(got.value.model.name == "quoted");
}

TEST_CASE("environment variables of others are left alone, near misses get a warning") {
  const scratch_folder folder;
  auto from = folder.nothing();
  from.environment = {{"LAMELLA_PORT", "tcp://10.0.0.1:80"},
                      {"LAMELLA_SERVICE_HOST", "10.0.0.1"},
                      {"LAMELLAHTTP__LISTEN", "x"},
                      {"PATH", "x"}};
  auto got = load(from);
  CHECK(got.problems.empty());
  CHECK(got.warnings.empty());
  from.environment = {{"LAMELLA_HTTP_LISTEN", "127.0.0.1:1"}};
  got = load(from);
  CHECK(got.problems.empty());
  REQUIRE(got.warnings.size() == 1);
  CHECK(got.warnings[0].find("LAMELLA_HTTP__LISTEN") != std::string::npos);
  from.environment = {{"LAMELLA_HTTP__LISEN", "127.0.0.1:1"}};
  CHECK(says(load(from),
             "LAMELLA_HTTP__LISEN: http.lisen: is not a known key | did you mean http.listen?"));
}

TEST_CASE("files are searched in the documented order") {
  const scratch_folder folder;
  auto from = folder.nothing();
  const auto level = [&] { return load(from).value.limits.max_n; };
  const auto text = [](int n) {
    return "version: 1\nlimits: {max_n: " + std::to_string(n) + "}\n";
  };
  CHECK(level() == 128);
  from.system_directory = folder.write("etc/lamella.yaml", text(1)).parent_path();
  CHECK(level() == 1);
  from.environment["HOME"] = folder.path().string();
  folder.write(".config/lamella/lamella.yaml", text(2));
  CHECK(level() == 2);
  from.environment["XDG_CONFIG_HOME"] = (folder.path() / "xdg").string();
  CHECK(level() == 1);
  folder.write("xdg/lamella/lamella.yaml", text(3));
  CHECK(level() == 3);
  from.working_directory = folder.write("here/lamella.yaml", text(4)).parent_path();
  CHECK(level() == 4);
  from.environment["LAMELLA_CONFIG"] = folder.write("five.yaml", text(5)).string();
  CHECK(level() == 5);
  from.file = folder.write("six.yaml", text(6));
  CHECK(level() == 6);
  from.file = folder.path() / "absent.yaml";
  const auto got = load(from);
  CHECK(got.missing_file);
  CHECK(says(got, "absent.yaml: does not exist"));
  from.file = folder.path();
  CHECK(says(load(from), "is not a file"));
}

TEST_CASE("a relative path in a file is relative to that file") {
  const scratch_folder folder;
  auto from = folder.nothing();
  from.environment["HOME"] = "/home/someone";
  from.file = folder.write("a/lamella.yaml",
                           "version: 1\nmodel: {path: ../m.gguf}\nhttp: {api_keys_file: ~/keys}\n");
  folder.write("a/conf.d/1.yaml", "admin: {api_keys_file: admin.keys}\n");
  auto got = load(from);
  CHECK(got.value.model.path == (folder.path() / "m.gguf").lexically_normal());
  CHECK(got.value.http.api_keys_file == "/home/someone/keys");
  CHECK(got.value.admin.api_keys_file == folder.path() / "a/conf.d/admin.keys");
  from.set = {"model.path=here.gguf"};
  CHECK(load(from).value.model.path == "here.gguf");
}

TEST_CASE("random edits of a good file never crash the reader") {
  const scratch_folder folder;
  const std::string good =
      "version: 1\nhttp:\n  listen: 127.0.0.1:1\n  max_body_bytes: 2MiB\npools:\n"
      "  attention: {members: 2, cells: {a: {kv_bytes: auto}}}\nmodel: {aliases: [a, b]}\n";
  const uint64_t seed = 20240611;
  CAPTURE(seed);
  uint64_t state = seed;
  const auto draw = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  const std::string bytes = "{}[]:,-&*!|>'\"%@`#? \n\tax1\0\xff";
  for (int round = 0; round < 2000; ++round) {
    auto text = good;
    for (uint64_t edits = 1 + draw(6); edits > 0; --edits) {
      const auto at = draw(text.size());
      if (draw(3) == 0)
        text.erase(at, 1 + draw(5));
      else if (draw(2) == 0)
        text.insert(at, 1, bytes[draw(bytes.size())]);
      else
        text[at] = bytes[draw(bytes.size())];
      if (text.empty()) text = " ";
    }
    CAPTURE(round);
    CHECK_NOTHROW(load_text(folder, text));
  }
}
