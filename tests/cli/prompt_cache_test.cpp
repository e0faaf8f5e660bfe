// `--prompt-cache` through the command line.
#include "cli/command.h"

namespace knap::prompt_cache_test {
namespace {

TEST(PromptCacheFlag, SecondRunComputesOneTokenAndWritesTheSameText) {
    const auto path = temporary_folder() / "round_trip.cache";
    const Words flags{"-p", "hello", "--prompt-cache", path.string()};
    const auto first = plain_json(flags);
    EXPECT_EQ(first["n_prompt_reused"], 0);
    ASSERT_TRUE(std::filesystem::exists(path));
    const std::string saved = read_text(path);

    const auto second = plain_json(flags);
    EXPECT_EQ(second["n_prompt_reused"], second["n_prompt"].get<int>() - 1);
    EXPECT_EQ(second["tokens"], first["tokens"]);
    EXPECT_EQ(read_text(path), saved);
}

TEST(PromptCacheFlag, LongerPromptReusesAndReplacesTheFile) {
    const auto path = (temporary_folder() / "longer.cache").string();
    plain_json({"--raw", "-p", "qxz", "--prompt-cache", path});
    const auto longer = plain_json({"--raw", "-p", "qxzqxz", "--prompt-cache", path});
    EXPECT_EQ(longer["n_prompt_reused"], 3);
    EXPECT_EQ(longer["tokens"], plain_json({"--raw", "-p", "qxzqxz"})["tokens"]);
    EXPECT_EQ(plain_json({"--raw", "-p", "qxzqxz", "--prompt-cache", path})["n_prompt_reused"], 5);
}

TEST(PromptCacheFlag, FileOfAnotherModelOrCacheTypeIsRefusedAndKept) {
    const auto path = temporary_folder() / "refused.cache";
    const Words flags{"-p", "hello", "--prompt-cache", path.string()};
    run_json(flags);
    const std::string saved = read_text(path);
    expect_error(run_tiny(flags + Words{"-ctk", "f32"}), 1, path.string());
    expect_error(run_tiny(flags + Words{"-m", tiny_model("tiny-llama", "F32", 1).string()}), 1,
                 path.string());
    EXPECT_EQ(read_text(path), saved);
}

TEST(PromptCacheFlag, DamagedFileIsRefused) {
    const auto path = write_text("damaged.cache", "not a prompt cache");
    expect_error(run_tiny({"-p", "hello", "--prompt-cache", path.string()}), 1, path.string());
}

TEST(PromptCacheFlag, MissingFolderIsAnErrorAfterTheText) {
    const auto result =
        run_tiny({"-p", "hello", "-n", "2", "--prompt-cache", "/no/such/folder/file"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_FALSE(result.output.empty());
    EXPECT_THAT(result.error, testing::HasSubstr("knap: error: "));
}

}  // namespace
}  // namespace knap::prompt_cache_test
