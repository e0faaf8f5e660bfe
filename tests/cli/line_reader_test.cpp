// Lines from a pipe, and work while none comes.
#include "cli/generate/line_reader.h"

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

namespace knap::test::line_reader_test {
namespace {

using Outcome = LineReader::Outcome;

class Pipe {
  public:
    Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
    ~Pipe() {
        close(ends_[0]);
        end();
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    int descriptor() const { return ends_[0]; }
    void write(std::string_view text) {
        EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    void end() {
        if (ends_[1] >= 0) {
            close(ends_[1]);
            ends_[1] = -1;
        }
    }

  private:
    std::array<int, 2> ends_{};
};

TEST(LineReader, WorksUntilTheLineComes) {
    Pipe pipe;
    LineReader reader(pipe.descriptor());
    std::string line;
    int n_pieces = 0;
    const auto work = [&](const std::function<bool()>& is_over) {
        EXPECT_FALSE(is_over());
        if (++n_pieces == 3) {
            pipe.write("hello\nagain\n");
            EXPECT_TRUE(is_over()) << "in the middle of a piece";
        }
        return n_pieces < 9;
    };
    EXPECT_EQ(reader.read(line, -1, work), Outcome::line);
    EXPECT_EQ(line, "hello");
    EXPECT_EQ(n_pieces, 3);
    EXPECT_EQ(reader.read(line, -1, work), Outcome::line);
    EXPECT_EQ(line, "again");
    EXPECT_EQ(n_pieces, 3) << "it was there already";
}

TEST(LineReader, StopsWorkingWhenNothingIsLeft) {
    Pipe pipe;
    LineReader reader(pipe.descriptor());
    std::string line;
    int n_pieces = 0;
    const auto work = [&](const std::function<bool()>&) {
        if (++n_pieces == 3) {
            pipe.write("part");
            pipe.end();
        }
        return n_pieces < 3;
    };
    EXPECT_EQ(reader.read(line, -1, work), Outcome::line);
    EXPECT_EQ(line, "part");
    EXPECT_EQ(n_pieces, 3) << "not again for the rest of the line";
    EXPECT_EQ(reader.read(line, -1, work), Outcome::end);
    EXPECT_EQ(n_pieces, 3) << "nor at the end of the input";
}

TEST(LineReader, ASignalInterruptsTheWorkAndDropsThePartOfALine) {
    Pipe pipe;
    Pipe wake;
    LineReader reader(pipe.descriptor());
    std::string line;
    int n_pieces = 0;
    const auto work = [&](const std::function<bool()>& is_over) {
        wake.write(".");
        pipe.write("par");
        EXPECT_TRUE(is_over());
        return ++n_pieces < 9;
    };
    EXPECT_EQ(reader.read(line, wake.descriptor(), work), Outcome::interrupted);
    EXPECT_EQ(n_pieces, 1);
}

}  // namespace
}  // namespace knap::test::line_reader_test
