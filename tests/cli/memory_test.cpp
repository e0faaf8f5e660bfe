// --memory: what runs keep for later ones, and what `knap explain` says of it.
#include "cli/command.h"

namespace knap::cli_memory_test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class MemoryFlag : public testing::Test {
  protected:
    MemoryFlag() { fs::remove_all(folder_); }
    ~MemoryFlag() override { fs::remove_all(folder_); }

    ProcessResult knap(const std::string& command, const Words& flags) const {
        ProcessRequest request;
        request.arguments = on_tiny_model(command) + Words{"-c", "512"} + flags;
        request.environment = {{"KNAP_CACHE_DIR", folder_.string()}};
        ProcessResult result = run_knap(request);
        EXPECT_EQ(result.exit_code, 0) << result.error;
        return result;
    }

    // An answer that repeats one letter, so copies of it are right.
    std::string run(const Words& flags) const {
        return knap("run",
                    Words{"-p", "hello", "-n", "24", "--ignore-eos", "--logit-bias", "65+1000"} +
                        flags)
            .output;
    }

    // Of files whose names begin so.
    int n_files(const std::string& kind) const {
        int n = 0;
        std::error_code no_folder;
        for (const auto& entry : fs::directory_iterator(folder_, no_folder)) {
            const std::string name = entry.path().filename().string();
            n += name.starts_with(kind + "-") && name.ends_with(".json") ? 1 : 0;
        }
        return n;
    }

    fs::path folder_ = temporary_folder() / "memory_flag";
};

const Words kStatic{"--strategy", "static", "--draft-plan", "m1=skip", "--draft-max", "3"};

TEST_F(MemoryFlag, OffKeepsNothingAndOnIsTheDefault) {
    const std::string text = run(kStatic + Words{"--memory", "off"});
    EXPECT_EQ(n_files("learned"), 0);
    EXPECT_EQ(run(kStatic), text);
    EXPECT_EQ(n_files("learned"), 1);
    EXPECT_EQ(run(kStatic + Words{"--memory", "on"}), text);
    EXPECT_EQ(run(kStatic + Words{"--memory", "off"}), text);
    EXPECT_EQ(n_files("learned"), 1);
    for (const auto& entry : fs::directory_iterator(folder_)) {
        if (entry.path().extension() == ".json") {
            EXPECT_EQ(read_json(entry.path().string())["runs"], 2) << "those with a memory";
        }
    }
}

TEST_F(MemoryFlag, IsOnOrOff) {
    for (const std::string command : {"run", "chat", "explain", "bench", "serve"}) {
        expect_error(run_knap({command, "--memory", "often"}), 2, "--memory");
    }
}

TEST_F(MemoryFlag, ExplainShowsWhatRunsLearned) {
    const Words prompt{"-p", "hello", "-n", "4"};
    run(kStatic);
    run({"--strategy", "knapspec"});
    knap("profile", {"--seconds", "0.2"});  // for its costs, which it does not measure then

    const std::string text = knap("explain", prompt).output;
    EXPECT_THAT(text, HasSubstr("\nWhat 2 earlier runs learned (--memory)\n"
                                "  accepted        of   context      text  drafts of\n"));
    EXPECT_THAT(text, ContainsRegex("\n +[0-9.]+ % +[0-9]+ +0\\+ +greedy  m1=skip\n"));
    EXPECT_THAT(text, HasSubstr("\n  copied tokens that were right by the length of the match, "
                                "greedy text: up to "));
    EXPECT_THAT(text, ContainsRegex("\n  [0-9.]+ \\+-[0-9.]+ ms for 1 row at [0-9]+"
                                    "(, on a busy machine)?: full\n"));

    const json learned = json::parse(knap("explain", prompt + Words{"--json"}).output)["learned"];
    EXPECT_GE(learned["runs"], 2);
    const auto has_way = [](const json& way) {
        return way["way"] == "m1=skip" && way["context"] == 0 && way["sampled"] == false &&
               way["judged"] > 0 && way["accepted"] <= way["judged"];
    };
    EXPECT_TRUE(std::ranges::any_of(learned["ways"], has_way)) << learned;
    EXPECT_FALSE(learned["copies"].empty());
    EXPECT_TRUE(learned["plans"].is_array());
    const auto is_step = [](const json& cost) { return cost["n_rows"] == 1 && cost["ms"] > 0; };
    EXPECT_TRUE(std::ranges::any_of(learned["costs"], is_step)) << learned;
}

TEST_F(MemoryFlag, ExplainWithoutAMemoryShowsNone) {
    const Words prompt{"-p", "hello", "-n", "4"};
    knap("profile", {"--seconds", "0.2"});
    const Words off = prompt + Words{"--memory", "off"};
    EXPECT_THAT(knap("explain", off).output, Not(HasSubstr("earlier run")));
    EXPECT_TRUE(json::parse(knap("explain", off + Words{"--json"}).output)["learned"].is_null());
    EXPECT_EQ(n_files("learned"), 0);
    EXPECT_THAT(knap("explain", prompt).output,
                HasSubstr("\nWhat 0 earlier runs learned (--memory)\n  nothing\n"));
    EXPECT_EQ(n_files("learned"), 1) << "its own runs";
}

}  // namespace
}  // namespace knap::cli_memory_test
