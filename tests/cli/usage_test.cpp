// Wrong usage: exit code 2, and one line with what was expected and what was found.
#include "cli/command.h"

namespace knap::usage_test {
namespace {

struct Misuse {
    Words words;
    std::string text;  // part of the message
};

void PrintTo(const Misuse& misuse, std::ostream* out) {
    *out << testing::PrintToString(misuse.words);
}

class Usage : public testing::TestWithParam<Misuse> {};

TEST_P(Usage, IsRefusedInOneLine) {
    const auto result = run_knap(GetParam().words);
    expect_error(result, 2, GetParam().text);
    EXPECT_THAT(result.error, testing::HasSubstr("--help"));
}

INSTANTIATE_TEST_SUITE_P(
    Words,
    Usage,
    testing::Values(
        Misuse{{"walk"},
               "unknown command 'walk', expected one of: run, chat, serve, info, check, "
               "profile, explain, search, bench, report, worker, make-model"},
        Misuse{{"run", "--bogus"}, "unknown flag '--bogus'"},
        Misuse{{"run", "-ngx", "4"}, "unknown flag '-ngx'"},
        Misuse{{"run", "-ngl", "-2"}, "--n-gpu-layers: expected"},
        Misuse{{"run", "--rpc-timeout", "-1"},
               "--rpc-timeout: expected a whole number from 0 to 86400, found '-1'"},
        Misuse{{"run", "--rpc-timeout", "soon"}, "--rpc-timeout: expected"},
        Misuse{{"run", "--rpc-timeout", "86401"}, "--rpc-timeout: expected"},
        Misuse{{"run", "-x"}, "unknown flag '-x'"},
        Misuse{{"-v"}, "unknown flag '-v'"},
        Misuse{{"chat", "-p", "hi"}, "unknown flag '-p'"},
        Misuse{{"run", "hello"}, "unexpected argument 'hello'"},
        Misuse{{"run", "--"}, "unknown flag '--'"},
        Misuse{{"run", "-p", "a", "-n"}, "-n: expected a value"},
        Misuse{{"run", "-fa"}, "-fa: expected a value"},
        Misuse{{"run", "--json=yes"}, "--json: expected no value, found 'yes'"},
        Misuse{{"make-model", "--type", "F32"}, "--shape is required"}));

INSTANTIATE_TEST_SUITE_P(
    Values,
    Usage,
    testing::Values(
        Misuse{{"run", "-n", "many"},
               "--n-predict: expected a whole number of at least -1, found 'many'"},
        Misuse{{"run", "-n", "-2"},
               "--n-predict: expected a whole number of at least -1, found '-2'"},
        Misuse{{"run", "-n", "1.5"}, "found '1.5'"},
        Misuse{{"run", "--cpu-mask", "0"}, "--cpu-mask: expected a hexadecimal mask"},
        Misuse{{"run", "--cpu-mask", "0x"}, "--cpu-mask: expected a hexadecimal mask"},
        Misuse{{"run", "--cpu-mask", "fast"},
               "--cpu-mask: expected a hexadecimal mask with a bit "
               "set, such as 0x5 for CPUs 0 and 2, found 'fast'"},
        Misuse{{"run", "--cpu-mask", std::string(300, 'f')}, "--cpu-mask: expected"},
        Misuse{{"run", "--prio", "4"}, "--prio: expected a whole number from -1 to 3, found '4'"},
        Misuse{{"run", "-n", ""}, "found ''"},
        Misuse{{"run", "-n", "99999999999"}, "found '99999999999'"},
        Misuse{{"run", "-c", "-1"},
               "--ctx-size: expected a whole number of at least 0, found '-1'"},
        Misuse{{"run", "-t", "-1"}, "--threads: expected a whole number from 0 to 512, found '-1'"},
        Misuse{{"run", "-t", "513"}, "found '513'"},
        Misuse{{"run", "-ub", "0"},
               "--ubatch-size: expected a whole number from 1 to 2048, found '0'"},
        Misuse{{"run", "-fa", "maybe"}, "--flash-attn: expected off|on|auto, found 'maybe'"},
        Misuse{{"run", "-ctk", "q4_0"}, "--cache-type-k: expected f16|f32|q8_0, found 'q4_0'"},
        Misuse{{"run", "-ctv", "bf16"}, "--cache-type-v: expected f16|f32|q8_0, found 'bf16'"},
        Misuse{{"run", "--repack", "yes"}, "--repack: expected auto|on|off, found 'yes'"},
        Misuse{{"run", "--kernels", "cuda"}, "--kernels: expected auto|ggml|own, found 'cuda'"},
        Misuse{{"run", "-s", "-2"}, "--seed: expected a whole number of at least 0, or -1"},
        Misuse{{"run", "--temp", "-0.5"}, "--temp: expected a number of at least 0, found '-0.5'"},
        Misuse{{"run", "--temp", "inf"}, "found 'inf'"},
        Misuse{{"run", "--top-k", "-1"},
               "--top-k: expected a whole number of at least 0, found '-1'"},
        Misuse{{"run", "--top-p", "1.5"},
               "--top-p: expected a number above 0 and at most 1, found '1.5'"},
        Misuse{{"run", "--top-p", "0"}, "found '0'"},
        Misuse{{"run", "--top-p", "nan"}, "found 'nan'"},
        Misuse{{"run", "--min-p", "-1"},
               "--min-p: expected a number of at least 0 and at most 1, found '-1'"},
        Misuse{{"run", "--repeat-penalty", "0"},
               "--repeat-penalty: expected a number above 0, found '0'"},
        Misuse{{"run", "--repeat-last-n", "-2"},
               "--repeat-last-n: expected a whole number of at least -1"},
        Misuse{{"run", "--presence-penalty", "x"},
               "--presence-penalty: expected a number, found 'x'"},
        Misuse{{"run", "--frequency-penalty", ""},
               "--frequency-penalty: expected a number, found ''"},
        Misuse{{"run", "--stop", ""}, "--stop: expected a text"},
        Misuse{{"run", "--logprobs", "21"},
               "--logprobs: expected a whole number from 0 to 20, found '21'"},
        Misuse{{"run", "--logprobs", "-1"}, "found '-1'"},
        Misuse{{"run", "--logprobs", "many"}, "found 'many'"},
        Misuse{{"chat", "--logprobs", "1"}, "unknown flag '--logprobs'"},
        Misuse{{"check", "-n", "0"}, "--n-predict: expected a whole number of at least 1"},
        Misuse{{"check", "--limit", "-1"}, "--limit: expected a whole number of at least 0"},
        Misuse{{"profile", "--seconds", "0"},
               "--seconds: expected a number above 0 and at most 3600, found '0'"},
        Misuse{{"profile", "--seconds", "nan"}, "found 'nan'"},
        Misuse{{"profile", "-o", "plot.pdf"},
               "--output: expected a file that ends in .json, .svg or .png, found 'plot.pdf'"},
        Misuse{{"profile", "-o", ""}, "found ''"},
        Misuse{{"info", "--lengths", "1,x"},
               "--lengths: expected a whole number of at least 1, found 'x'"},
        Misuse{{"info", "--lengths", "1,,2"}, "found ''"},
        Misuse{{"info", "--lengths", ","}, "found ''"},
        Misuse{{"info", "--lengths", ""}, "--lengths: expected at least one number"}));

INSTANTIATE_TEST_SUITE_P(
    Speculation,
    Usage,
    testing::Values(
        Misuse{{"run", "--strategy", "guess"}, "--strategy: expected autoregressive|"},
        Misuse{{"chat", "--strategy", ""}, ", found ''"},
        Misuse{{"run", "--draft-max", "65"},
               "--draft-max: expected a whole number from 0 to 64, found '65'"},
        Misuse{{"run", "--draft-max", "-1"}, "found '-1'"},
        Misuse{{"run", "--draft-width", "0"},
               "--draft-width: expected a whole number from 1 to 16, found '0'"},
        Misuse{{"run", "--exit-confidence", "1.5"},
               "--exit-confidence: expected a number of at least 0 and at most 1, found '1.5'"},
        Misuse{{"run", "--acceptance", "coin"},
               "--acceptance: expected shared-noise|ratio|equality, found 'coin'"},
        Misuse{{"run", "--assume-acceptance", "-0.5"},
               "--assume-acceptance: expected a number of at least 0 and at most 1, found '-0.5'"},
        Misuse{{"run", "--assume-acceptance", "nan"}, "found 'nan'"},
        Misuse{{"run", "--profile", ""}, "--profile: expected auto, none or a file, found ''"},
        Misuse{{"profile", "--profile", "auto"}, "unknown flag '--profile'"},
        Misuse{{"info", "--strategy", "static"}, "unknown flag '--strategy'"}));

INSTANTIATE_TEST_SUITE_P(
    LogitBias,
    Usage,
    testing::Values(Misuse{{"run", "--logit-bias", "15"}, "found '15'"},
                    Misuse{{"run", "--logit-bias", "15+"}, "found '15+'"},
                    Misuse{{"run", "--logit-bias", "+1"}, "found '+1'"},
                    Misuse{{"run", "--logit-bias", "-5+1"}, "found '-5+1'"},
                    Misuse{{"run", "--logit-bias", "15+-1"}, "found '15+-1'"},
                    Misuse{{"run", "--logit-bias", "15+inf"}, "found '15+inf'"},
                    Misuse{{"run", "--logit-bias", "15-nan"}, "found '15-nan'"},
                    Misuse{{"run", "--logit-bias", "15+1x"}, "found '15+1x'"}));

INSTANTIATE_TEST_SUITE_P(
    Together,
    Usage,
    testing::Values(
        Misuse{{"run"}, "no prompt: expected -p TEXT, -f FILE, or -f - for standard input"},
        Misuse{{"run", "-p", "a", "-f", "b"}, "expected either --prompt or --file, found both"},
        Misuse{{"run", "-p", "a", "--raw", "--chat-template", "chatml"},
               "either --raw or --chat-template"},
        Misuse{{"run", "-p", "a", "--raw", "--system", "b"},
               "--system: expected a chat template for the system message, found --raw"},
        Misuse{{"run", "-p", "a", "-ctv", "q8_0"}, "or -fa on with q8_0, found neither"},
        Misuse{{"run", "-p", "a", "-ctk", "q8_0", "-ctv", "q8_0", "--kernels", "ggml"},
               "expected -ctk q8_0 (without --kernels ggml) or -fa on with q8_0"},
        Misuse{{"profile", "--plans"},
               "--plans: expected a text to search on (-f FILE), found none"},
        Misuse{{"profile", "-f", "a"},
               "--file: expected --plans, the only use of a text, found none"},
        Misuse{{"chat", "-ctv", "q8_0", "-fa", "off"}, "or -fa on with q8_0"}));

TEST(CommandLine, NoArgumentsPrintsHelpAsWrongUsage) {
    const auto result = run_knap(Words{});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(result.error, testing::HasSubstr("Usage: knap"));
}

TEST(CommandLine, VersionIsOneLine) {
    const auto result = run_knap({"--version"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, testing::MatchesRegex("knap [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(CommandLine, HelpGoesToStandardOutput) {
    for (const Words& words :
         {Words{"--help"}, Words{"-h"}, Words{"run", "--help"}, Words{"chat", "-h"},
          Words{"info", "-h"}, Words{"check", "-h"}, Words{"profile", "-h"}, Words{"explain", "-h"},
          Words{"make-model", "-h"}}) {
        const auto result = run_knap(words);
        EXPECT_EQ(result.exit_code, 0);
        EXPECT_THAT(result.output, testing::HasSubstr("Usage: knap"));
        EXPECT_EQ(result.error, "");
    }
}

TEST(CommandLine, HelpNamesEveryFlagDefaultAndTheSamplingOrder) {
    const auto help = run_knap({"run", "--help"}).output;
    for (const char* flag : {"-m, --model FILE",
                             "-p, --prompt TEXT",
                             "-f, --file FILE",
                             "-n, --n-predict, --predict N",
                             "-c, --ctx-size N",
                             "-t, --threads N",
                             "-ub, --ubatch-size N",
                             "-fa, --flash-attn off|on|auto",
                             "-s, --seed N",
                             "--temp, --temperature X",
                             "--top-k N",
                             "--top-p X",
                             "--min-p X",
                             "--repeat-penalty X",
                             "--repeat-last-n N",
                             "--presence-penalty X",
                             "--frequency-penalty X",
                             "--logit-bias TOKEN(+/-)BIAS",
                             "--ignore-eos",
                             "-ctk, --cache-type-k f16|f32|q8_0",
                             "-ctv, --cache-type-v f16|f32|q8_0",
                             "--chat-template NAME",
                             "--raw",
                             "-sys, --system, --system-prompt TEXT",
                             "--stop TEXT",
                             "--json",
                             "--logprobs N",
                             "-v, --verbose",
                             "-h, --help",
                             "--repack auto|on|off",
                             "--kernels auto|ggml|own",
                             "--prompt-cache FILE",
                             "--strategy NAME",
                             "--draft-max N",
                             "--draft-plan PLAN",
                             "--strategy-options LIST",
                             "--draft-width N",
                             "--exit-confidence X",
                             "--acceptance shared-noise|ratio|equality",
                             "--assume-acceptance X",
                             "--show-draft"}) {
        EXPECT_THAT(help, testing::HasSubstr(flag));
    }
    EXPECT_THAT(help, testing::HasSubstr("\n--strategy-options for knapspec-paper:\n  variant="));
    EXPECT_THAT(help, testing::HasSubstr("(default: 0.95)"));
    EXPECT_THAT(
        help, testing::HasSubstr("order: logit bias, penalties, temperature, top-k, top-p, min-p"));
}

}  // namespace
}  // namespace knap::usage_test
