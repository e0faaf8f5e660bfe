// Files that are not models: every command prints one line and exits with code 1.
#include "cli/command.h"

namespace knap::bad_model_test {
namespace {

class BadModel : public testing::TestWithParam<const char*> {
  protected:
    ProcessResult open(const std::filesystem::path& path) const {
        Words words{GetParam(), "-m", path.string()};
        return run_knap(GetParam() == std::string("run") ? words + Words{"-p", "hello"} : words);
    }
};

TEST_P(BadModel, MissingFile) {
    expect_error(open("/no/such/model.gguf"), 1, "/no/such/model.gguf");
}

TEST_P(BadModel, Folder) {
    expect_error(open(temporary_folder()), 1, temporary_folder().string());
}

TEST_P(BadModel, EmptyFile) {
    const auto path = write_text("empty.gguf", "");
    expect_error(open(path), 1, path.string());
}

TEST_P(BadModel, TextFile) {
    const auto path = write_text("text.gguf", "This is not a model.\n");
    expect_error(open(path), 1, path.string());
}

TEST_P(BadModel, TruncatedFile) {
    const std::string bytes = read_text(tiny_model());
    for (const std::size_t size : {bytes.size() / 100, bytes.size() / 2, bytes.size() - 1}) {
        const auto path = write_text("truncated.gguf", bytes.substr(0, size));
        expect_error(open(path), 1, path.string());
    }
}

TEST_P(BadModel, NameWithALineBreakGivesAnErrorOfOneLine) {
    expect_error(open("/no/such\nmodel"), 1, "such");
}

INSTANTIATE_TEST_SUITE_P(Commands, BadModel, testing::Values("run", "chat", "info", "check"));

}  // namespace
}  // namespace knap::bad_model_test
