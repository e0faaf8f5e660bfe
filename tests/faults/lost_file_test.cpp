// A model whose file changes while it is in use. Its embedding is read from the file all the time.
#include "cli/command.h"

namespace knap::lost_file_test {
namespace {

namespace fs = std::filesystem;

class LostFile : public ::testing::Test {
  protected:
    LostFile() { make_model(); }
    ~LostFile() override { fs::remove(model_); }

    void make_model() const {
        const auto result = run_knap({"make-model", "--shape", "smollm2-135m", "--layers", "2",
                                      "--type", "Q4_0", "-o", model_.string()});
        EXPECT_EQ(result.exit_code, 0) << result.error;
    }
    Words words(const std::string& n_tokens) const {
        return {"run", "-m",    model_.string(), "-t", "1",
                "-p",  "hello", "--ignore-eos",  "-n", n_tokens};
    }

    fs::path model_ = temporary_folder() / "lost.gguf";
};

TEST_F(LostFile, ModelThatIsCutShortEndsTheProgramWithOneLine) {
    BackgroundProcess run(knap_binary(), words("-1"));
    ASSERT_TRUE(run.wait_for_output());
    fs::resize_file(model_, 4096);
    const auto result = run.finish();
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.error,
              "knap: error: " + model_.string() +
                  ": expected the file as it was when it was opened, found a part "
                  "missing: another program has changed it, or its disk has failed\n");
}

// It is there as long as it is mapped.
TEST_F(LostFile, ModelThatIsDeletedOrReplacedIsUsedToTheEnd) {
    const auto whole = run_knap(words("200"));
    ASSERT_EQ(whole.exit_code, 0) << whole.error;
    for (const bool is_replaced : {true, false}) {
        BackgroundProcess run(knap_binary(), words("200"));
        ASSERT_TRUE(run.wait_for_output());
        if (is_replaced) {
            fs::rename(write_text("other.gguf", "no model"), model_);
        } else {
            fs::remove(model_);
        }
        const auto result = run.finish();
        EXPECT_EQ(result.exit_code, 0) << result.error;
        EXPECT_EQ(result.output, whole.output);
        make_model();
    }
}

}  // namespace
}  // namespace knap::lost_file_test
