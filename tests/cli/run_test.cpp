// `knap run`: what each flag does.
#include <set>

#include "cli/command.h"

namespace knap::run_test {
namespace {

using nlohmann::json;

constexpr const char* kEndOfTurn = "287";  // <|im_end|> of the tiny vocabulary

TEST(Run, StreamsTextThenOneStatisticsLine) {
    const auto result = run_tiny({"-p", "hello", "-n", "8", "--strategy", "autoregressive"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, plain_json({"-p", "hello"})["text"].get<std::string>() + "\n");
    EXPECT_THAT(result.error,
                testing::MatchesRegex("knap: 20 prompt tokens \\([0-9.]+ tokens/s\\), 8 generated "
                                      "\\([0-9.]+ tokens/s, [0-9.]+ GB/s\\)\n"));
}

TEST(Run, JsonCountsTheGraphsOfGgml) {
    const auto result = run_tiny({"-p", "hello", "-n", "8", "--json", "--kernels", "ggml"});
    const json object = json::parse(result.output);
    EXPECT_GT(object["graphs"]["built"], 0);
    EXPECT_GT(object["graphs"]["reused"], 0);
    EXPECT_GE(object["graphs"]["evicted"], 0);
}

TEST(Run, JsonHasEveryPromisedField) {
    const auto result = run_tiny({"-p", "hello", "-n", "8", "--json", "-s", "7", "-c", "512"});
    EXPECT_EQ(result.error, "");
    const json object = json::parse(result.output);
    EXPECT_TRUE(object["text"].is_string());
    EXPECT_EQ(object["tokens"].size(), 8u);
    EXPECT_EQ(object["stop"], "length");
    EXPECT_EQ(object["strategy"], "knapspec");
    EXPECT_TRUE(object["decisions"].is_array());
    EXPECT_EQ(object["n_prompt"], 20);
    EXPECT_EQ(object["n_prompt_reused"], 0);
    EXPECT_EQ(object["n_generated"], 8);
    for (const char* name :
         {"load_ms", "prefill_ms", "decode_ms", "compute_ms", "host_ms", "tokens_per_second",
          "prefill_tokens_per_second", "bandwidth_gb_per_second"}) {
        EXPECT_GT(object["timings"][name], 0) << name;
    }
    for (const char* name : {"draft_ms", "verify_ms", "search_ms", "other_ms"}) {
        EXPECT_GE(object["timings"][name], 0) << name;
    }
    for (const char* name : {"rounds", "n_drafted", "n_tree_nodes", "n_accepted", "n_forced",
                             "acceptance_rate", "mean_accepted_length"}) {
        EXPECT_TRUE(object[name].is_number()) << name;
    }
    EXPECT_TRUE(object["acceptance_by_position"].is_array());
    for (const char* source : {"copy", "plan", "cascade"}) {
        for (const char* name : {"rounds", "n_drafted", "n_accepted"}) {
            EXPECT_TRUE(object["sources"][source][name].is_number()) << source << " " << name;
        }
    }
    EXPECT_EQ(object["near_ties"], json::array());
    EXPECT_TRUE(object["row_invariant"].is_boolean());
    EXPECT_EQ(object["is_projection"], false);
    for (const char* name : {"built", "reused", "evicted"}) {
        EXPECT_EQ(object["graphs"][name], 0) << "knap's own operators need no graph";
    }
    EXPECT_EQ(object["allocations_after_warmup"], 0);
    for (const char* name : {"weights", "cache", "scratch", "peak_rss"}) {
        EXPECT_GT(object["memory"][name], 0) << name;
    }
    EXPECT_TRUE(object["attention_path"] == "kernel" || object["attention_path"] == "folded");
    EXPECT_EQ(object["repack"], "off");
    EXPECT_EQ(object["cuda_kernels"], "no NVIDIA GPU");
    EXPECT_EQ(object["seed"], 7);
    EXPECT_EQ(object["model"], tiny_model().string());
    EXPECT_EQ(object["n_threads"], 1);
    EXPECT_EQ(object["n_ctx"], 512);
}

TEST(Run, ReadsThePromptFromAFileOrStandardInput) {
    const json expected = plain_json({"-p", "two\nlines"})["tokens"];
    // The newline that ends a file is not part of the prompt.
    const auto path = write_text("prompt.txt", "two\nlines\n");
    EXPECT_EQ(plain_json({"-f", path.string()})["tokens"], expected);

    ProcessRequest request;
    request.arguments = on_tiny_model("run") +
                        Words{"--json", "-n", "8", "--file", "-", "--strategy", "autoregressive"};
    request.input = "two\nlines";
    const json piped = json::parse(run_knap(request).output);
    expect_plain_decoding(piped);
    EXPECT_EQ(piped["tokens"], expected);
}

TEST(Run, RefusesPromptsThatCannotBeRead) {
    expect_error(run_tiny({"-f", "/no/such/file"}), 1,
                 "/no/such/file: cannot be opened: No such file");
    expect_error(run_tiny({"-f", temporary_folder().string()}), 1,
                 "cannot be read: Is a directory");
    expect_error(run_tiny({"-f", "/dev/zero"}), 1, "expected at most 67108864 bytes");
}

TEST(Run, RefusesEmptyPrompts) {
    expect_error(run_tiny({"-p", ""}), 1, "the prompt is empty");
    expect_error(run_tiny({"--prompt="}), 1, "the prompt is empty");
    expect_error(run_tiny({"-f", "/dev/null"}), 1, "the prompt is empty");
}

TEST(Run, RefusesAPromptLongerThanTheContext) {
    expect_error(run_tiny({"-c", "16", "--raw", "-p", std::string(17, 'x')}), 1,
                 "expected at most 16 tokens");
}

TEST(Run, StopsAtTheEndOfTheContext) {
    const json object = run_json({"-c", "32", "-n", "-1", "--ignore-eos", "--raw", "-p", "xyz"});
    EXPECT_EQ(object["stop"], "context");
    EXPECT_EQ(object["n_prompt"].get<int>() + object["n_generated"].get<int>(), 32);
}

TEST(Run, AcceptsValuesThatLookLikeFlags) {
    EXPECT_EQ(run_json({"--raw", "-p", "-fa"})["n_prompt"], 3);
    EXPECT_EQ(run_json({"--raw", "--prompt=--x=1"})["n_prompt"], 5);
    EXPECT_EQ(run_json({"--raw", "-p", "--"})["n_prompt"], 2);
}

TEST(Run, TheLastOfARepeatedFlagWins) {
    EXPECT_EQ(run_json({"-p", "a", "-n", "3", "-n", "2"})["n_generated"], 2);
}

TEST(Run, GeneratesAtMostTheRequestedTokens) {
    for (const char* spelling : {"-n", "--n-predict", "--predict"}) {
        EXPECT_EQ(run_json({"-p", "a", spelling, "3"})["n_generated"], 3);
    }
    EXPECT_EQ(run_json({"-p", "a", "-n", "0"})["n_generated"], 0);
}

TEST(Run, ChatTemplateSurroundsThePrompt) {
    const int n_raw = run_json({"-p", "xyz", "--raw"})["n_prompt"];
    const int n_own = run_json({"-p", "xyz"})["n_prompt"];
    EXPECT_EQ(n_raw, 3);
    EXPECT_GT(n_own, n_raw);
    EXPECT_EQ(run_json({"-p", "xyz", "--chat-template", "chatml"})["n_prompt"], n_own);
    EXPECT_NE(run_json({"-p", "xyz", "--chat-template", "llama2"})["n_prompt"], n_own);
    // A template written by hand, with its special tokens, is the same as the template.
    const std::string by_hand = "<|im_start|>user\nxyz<|im_end|>\n<|im_start|>assistant\n";
    EXPECT_EQ(run_json({"-p", by_hand, "--raw"})["n_prompt"], n_own);
}

TEST(Run, SystemMessageIsPartOfThePrompt) {
    const int n_without = run_json({"-p", "xyz"})["n_prompt"];
    const int n_with = run_json({"-p", "xyz", "--system", "Be brief."})["n_prompt"];
    EXPECT_GT(n_with, n_without);
    EXPECT_EQ(run_json({"-p", "xyz", "-sys", "Be brief."})["n_prompt"], n_with);
    EXPECT_EQ(run_json({"-p", "xyz", "--system-prompt", "Be brief."})["n_prompt"], n_with);
}

TEST(Run, UnknownTemplateNameIsAnError) {
    expect_error(run_tiny({"-p", "a", "--chat-template", "nonesuch"}), 1, "found 'nonesuch'");
}

TEST(Run, ModelWithAnUnknownTemplateUsesIt) {
    const auto model =
        patched_model("unknown_template.gguf", "'<|im_start|>", "'<|xx_start|>").string();
    const Words words{"run", "-m", model, "-t", "1", "-p", "a", "-n", "1", "--json"};
    const json formatted = json::parse(run_knap(words).output);
    const json raw = json::parse(run_knap(words + Words{"--raw"}).output);
    EXPECT_EQ(raw["n_prompt"], 1);
    EXPECT_GT(formatted["n_prompt"], 20) << "\"<|xx_start|>\" is plain text, twice";
}

TEST(Run, ModelWithABrokenTemplateAsksForAnother) {
    const auto model =
        patched_model("broken_template.gguf", "{% for message in", "{% fox message in").string();
    expect_error(run_knap({"run", "-m", model, "-p", "a"}), 1,
                 "or --raw, to use the prompt as it is");
    EXPECT_EQ(run_knap({"run", "-m", model, "-t", "1", "-p", "a", "-n", "1", "--raw"}).exit_code,
              0);
}

TEST(Run, ModelWithoutATemplateUsesThePromptAsItIs) {
    const auto model =
        patched_model("no_template.gguf", "tokenizer.chat_template", "tokenizer.chat_templatX");
    const Words words{"run", "-m", model.string(), "-t", "1", "-n", "1", "--json", "-p", "xyz"};
    EXPECT_EQ(json::parse(run_knap(words).output)["n_prompt"], 3);
    expect_error(run_knap(words + Words{"--system", "a"}), 1,
                 "choose one with --chat-template NAME");
}

TEST(Run, StopStringEndsTheText) {
    const std::string text = plain_json({"-p", "hello", "-n", "40"})["text"];
    const auto at = text.find("at");
    ASSERT_NE(at, std::string::npos) << "this test expects the tiny model to write \"at\"";
    const json object =
        plain_json({"-p", "hello", "-n", "40", "--stop", "never seen", "--stop", "at"});
    EXPECT_EQ(object["stop"], "stop");
    EXPECT_EQ(object["text"], text.substr(0, at));
    // Brackets, commas and percent signs have no special meaning.
    EXPECT_EQ(plain_json({"-p", "hello", "-n", "40", "--stop", "[at,b]", "--stop", "%%"})["text"],
              text);
}

TEST(Run, GrammarFileConstrainsTheText) {
    const auto file = write_text("answer.gbnf", "root ::= \"the answer is \" (\"yes\" | \"no\")\n");
    const json object = run_json({"-p", "hello", "-n", "40", "--grammar-file", file.string()});
    EXPECT_THAT(object["text"].get<std::string>(), testing::MatchesRegex("the answer is (yes|no)"));
    EXPECT_EQ(object["stop"], "eos");
    EXPECT_GT(object["n_forced"], 0);
}

TEST(Run, BadGrammarFilesAreRefused) {
    const auto refuse = [](const std::string& path, int exit_code, const std::string& text) {
        expect_error(run_tiny({"-p", "hello", "--grammar-file", path}), exit_code, text);
    };
    refuse(write_text("bad.gbnf", "root ::= \"a\"\nb := 3\n").string(), 1,
           "--grammar-file: expected ::= in line 2");
    refuse(write_text("empty.gbnf", "").string(), 2, "empty file");
    refuse("/nonexistent", 1, "--grammar-file");
    const auto good = write_text("good.gbnf", "root ::= \"a\"\n").string();
    expect_error(run_tiny({"-p", "hello", "--ignore-eos", "--grammar-file", good}), 1,
                 "--ignore-eos");
}

TEST(Run, JsonSchemaFileConstrainsTheText) {
    const auto file = write_text("answer.json", R"({"type": "object", "required": ["ok"],
        "properties": {"ok": {"type": "boolean"}}, "additionalProperties": false})");
    const json object = run_json({"-p", "hello", "-n", "80", "--json-schema-file", file.string()});
    EXPECT_TRUE(json::parse(object["text"].get<std::string>())["ok"].is_boolean());
    EXPECT_EQ(object["stop"], "eos");
}

TEST(Run, BadSchemaFilesAreRefused) {
    const auto bad = write_text("bad.json", R"({"type": "string", "maxLength": -1})").string();
    expect_error(run_tiny({"-p", "hello", "--json-schema-file", bad}), 1,
                 "--json-schema-file: #: `maxLength`: expected a count, found -1");
    const auto grammar = write_text("good.gbnf", "root ::= \"a\"\n").string();
    expect_error(run_tiny({"-p", "hello", "--grammar-file", grammar, "--json-schema-file", bad}), 2,
                 "expected one of --grammar-file and --json-schema-file");
}

TEST(Run, EndOfTextStopsUnlessIgnored) {
    const std::string bias = std::string(kEndOfTurn) + "+1000";
    const json object = run_json({"-p", "a", "--logit-bias", bias});
    EXPECT_EQ(object["stop"], "eos");
    EXPECT_EQ(object["n_generated"], 0);
    EXPECT_EQ(run_json({"-p", "a", "--logit-bias", bias, "--ignore-eos"})["stop"], "length");
}

TEST(Run, LogitBiasPrefersAndForbids) {
    const json preferred = plain_json({"-p", "hello", "--logit-bias", "65+1000"});
    EXPECT_EQ(preferred["text"], "AAAAAAAA");
    const int first = plain_json({"-p", "hello"})["tokens"][0];
    const json without =
        plain_json({"-p", "hello", "--logit-bias=" + std::to_string(first) + "-inf"});
    EXPECT_THAT(without["tokens"].get<std::vector<int>>(), testing::Not(testing::Contains(first)));
    expect_error(run_tiny({"-p", "a", "--logit-bias", "288+1"}), 1, "--logit-bias");
}

TEST(Run, SameSeedSameText) {
    const Words hot{"-p", "hello", "--temp", "3", "--top-k", "0", "--top-p", "1", "--min-p", "0"};
    const json seven = plain_json(hot + Words{"-s", "7"});
    EXPECT_EQ(plain_json(hot + Words{"--seed", "7"})["tokens"], seven["tokens"]);
    EXPECT_NE(plain_json(hot + Words{"-s", "8"})["tokens"], seven["tokens"]);
    const json drawn = plain_json(hot + Words{"-s", "-1"});
    EXPECT_NE(plain_json(hot + Words{"-s", "-1"})["seed"], drawn["seed"]);
    EXPECT_EQ(plain_json(hot + Words{"-s", drawn["seed"].dump()})["tokens"], drawn["tokens"]);
}

TEST(Run, TruncationToOneTokenIsGreedy) {
    const json greedy = plain_json({"-p", "hello"})["tokens"];
    const Words hot{"-p", "hello", "--temperature", "3", "-s", "7"};
    const Words open{"--top-k", "0", "--top-p", "1", "--min-p", "0"};
    EXPECT_NE(plain_json(hot + open)["tokens"], greedy);
    EXPECT_EQ(plain_json(hot + open + Words{"--top-k", "1"})["tokens"], greedy);
    EXPECT_EQ(plain_json(hot + open + Words{"--top-p", "1e-6"})["tokens"], greedy);
    EXPECT_EQ(plain_json(hot + open + Words{"--min-p", "1"})["tokens"], greedy);
}

TEST(Run, PenaltiesPreventRepetition) {
    const Words words{"-p", "hello", "-n", "40", "--ignore-eos"};
    const auto n_distinct = [](const json& object) {
        const auto tokens = object["tokens"].get<std::vector<int>>();
        return std::set<int>(tokens.begin(), tokens.end()).size();
    };
    const json plain = plain_json(words);
    ASSERT_LT(n_distinct(plain), 40u);
    EXPECT_EQ(n_distinct(plain_json(words + Words{"--presence-penalty", "1000"})), 40u);
    EXPECT_EQ(n_distinct(plain_json(words + Words{"--frequency-penalty", "1000"})), 40u);
    EXPECT_GT(n_distinct(plain_json(words + Words{"--repeat-penalty", "1000"})), n_distinct(plain));
    EXPECT_LT(n_distinct(plain_json(words + Words{"--presence-penalty", "-1000"})),
              n_distinct(plain));
    // A penalty that looks back at no tokens does nothing.
    EXPECT_EQ(
        plain_json(words + Words{"--presence-penalty", "1000", "--repeat-last-n", "0"})["tokens"],
        plain["tokens"]);
    EXPECT_LT(
        n_distinct(plain_json(words + Words{"--presence-penalty", "1000", "--repeat-last-n", "4"})),
        40u);
}

TEST(Run, CacheTypesChangeTheCacheSize) {
    const auto cache_bytes = [](const Words& flags) -> std::int64_t {
        return run_json(Words{"-p", "a"} + flags)["memory"]["cache"];
    };
    const auto half = cache_bytes({});
    EXPECT_EQ(cache_bytes({"-ctk", "f16", "-ctv", "f16"}), half);
    EXPECT_EQ(cache_bytes({"-ctk", "f32", "-ctv", "f32"}), 2 * half);
}

TEST(Run, FlashAttentionIsChosenByFlag) {
    EXPECT_EQ(run_json({"-p", "a", "-fa", "on"})["attention_path"], "flash");
    EXPECT_NE(run_json({"-p", "a", "-fa", "off"})["attention_path"], "flash");
    EXPECT_NE(run_json({"-p", "a", "--flash-attn", "auto"})["attention_path"], "flash");
}

TEST(Run, QuantizedCacheIsSmaller) {
    const auto cache_bytes = [](const Words& flags) -> std::int64_t {
        // q8_0 stores blocks of 32 values: a head of tiny-llama is smaller than that.
        const Words words{
            "run", "-m",    tiny_model("small-llama").string(), "-t", "1", "-p", "a", "-n",
            "2",   "--json"};
        const auto result = run_knap(words + flags);
        EXPECT_EQ(result.exit_code, 0) << result.error;
        return json::parse(result.output)["memory"]["cache"];
    };
    const auto half = cache_bytes({});
    const auto quantized_keys = cache_bytes({"--cache-type-k", "q8_0"});
    EXPECT_LT(quantized_keys, half);
    const auto in_blocks = cache_bytes({"-ctk", "q8_0", "-ctv", "q8_0", "-fa", "on"});
    EXPECT_LT(in_blocks, quantized_keys);
    EXPECT_LT(cache_bytes({"-ctk", "q8_0", "-ctv", "q8_0"}), in_blocks)
        << "our kernel has one scale per head";
}

TEST(Run, ThreadsAndBatchSizeDoNotChangeTheText) {
    const json object = plain_json({"-p", "hello, world"});
    EXPECT_EQ(plain_json({"-p", "hello, world", "-ub", "3"})["tokens"], object["tokens"]);
    EXPECT_EQ(plain_json({"-p", "hello, world", "--ubatch-size=1"})["tokens"], object["tokens"]);
    const json threaded = plain_json({"-p", "hello, world", "-t", "2"});
    EXPECT_EQ(threaded["tokens"], object["tokens"]);
    EXPECT_EQ(threaded["n_threads"], 2);
}

TEST(Run, KernelsCanBeLeftToGgml) {
    EXPECT_EQ(run_json({"-p", "a", "--kernels", "ggml"})["attention_path"], "folded");
}

TEST(Run, RepackIsAccepted) {
    for (const char* mode : {"auto", "on", "off"}) {
        const auto model = tiny_model("small-llama", "Q4_0").string();
        const auto result = run_knap(
            {"run", "-m", model, "-t", "1", "-p", "a", "-n", "2", "--json", "--repack", mode});
        ASSERT_EQ(result.exit_code, 0) << result.error;
        const json object = json::parse(result.output);
        EXPECT_TRUE(object["repack"].is_string());
        if (mode == std::string("off")) {
            EXPECT_EQ(object["repack"], "off");
        }
    }
}

TEST(Run, VerboseLogsTheModel) {
    const auto result = run_tiny({"-p", "a", "-n", "1", "-v"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.error, testing::HasSubstr("knap: loaded " + tiny_model().string()));
}

TEST(Run, FullDiskIsAnError) {
    ProcessRequest request;
    request.arguments = {"-c", "exec \"$0\" run -m \"$1\" -t 1 -p a -n 2 > /dev/full",
                         knap_binary().string(), tiny_model().string()};
    expect_error(run_process("/bin/sh", request), 1,
                 "cannot write to standard output: No space left on device");
}

TEST(Run, ClosedPipeEndsTheRunQuietly) {
    ProcessRequest request;
    request.arguments = on_tiny_model("run") + Words{"-p", "hello", "--ignore-eos"};
    request.closes_output_after = 1;
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output.size(), 1u);
    EXPECT_FALSE(result.has_timed_out);
}

TEST(Run, TerminalShowsProgressAndLeavesNothingBehind) {
    ProcessRequest request;
    request.arguments =
        on_tiny_model("run") + Words{"-p", "hello", "-n", "8", "--logit-bias", "65+1000"};
    request.is_on_terminal = true;
    const auto result = run_knap(request);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, testing::HasSubstr("\rprompt ["));
    // The bar is erased before the first word.
    EXPECT_THAT(result.output, testing::HasSubstr("\r\033[KAAAAAAAA\r\n"));
}

}  // namespace
}  // namespace knap::run_test
