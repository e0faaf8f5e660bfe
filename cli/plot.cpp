#include "cli/plot.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/partial_file.h"
#include "base/quoted.h"

namespace knap {
namespace {

constexpr const char* kProgram = "gnuplot";
constexpr const char* kPackage = "gnuplot-nox";

// An unnamed file for one of the child's streams. Unlike a pipe it never fills up, so nothing has
// to be read or written while the child runs.
class StreamFile {
  public:
    StreamFile() : file_(std::tmpfile(), &std::fclose) {
        if (!file_) {
            fail("cannot create a temporary file: ", std::strerror(errno));
        }
    }
    explicit StreamFile(std::string_view text) : StreamFile() {
        const std::size_t n_written = std::fwrite(text.data(), 1, text.size(), file_.get());
        if (n_written != text.size() || std::fflush(file_.get()) != 0) {
            fail("cannot write a temporary file: ", std::strerror(errno));
        }
        std::rewind(file_.get());
    }

    int descriptor() const { return fileno(file_.get()); }
    std::string read_all() {
        std::string text;
        std::array<char, 65536> chunk;
        std::rewind(file_.get());
        while (const std::size_t n_read = std::fread(chunk.data(), 1, chunk.size(), file_.get())) {
            text.append(chunk.data(), n_read);
        }
        return text;
    }

  private:
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

[[noreturn]] void fail_to_run(const char* reason) {
    fail(kProgram, ": cannot be run: ", reason, "; to draw pictures, install the package ",
         kPackage);
}

pid_t start(std::vector<const char*> words,
            const StreamFile& input,
            const StreamFile& output,
            const StreamFile& errors) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.descriptor(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output.descriptor(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
    words.insert(words.begin(), kProgram);
    words.push_back(nullptr);
    pid_t child = 0;
    // The C interface takes non-const strings but does not change them.
    const int error = posix_spawnp(&child, kProgram, &actions, nullptr,
                                   const_cast<char**>(words.data()), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        fail_to_run(std::strerror(error));
    }
    return child;
}

int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

// gnuplot prints the line that it rejects, marks the position, and gives the reason last.
std::string last_line(const std::string& text) {
    const auto end = text.find_last_not_of(" \n");
    if (end == std::string::npos) {
        return "no reason given";
    }
    const auto begin = text.find_last_of('\n', end);
    const auto first = begin == std::string::npos ? 0 : begin + 1;
    return printable(std::string_view(text).substr(first, end + 1 - first));
}

// Runs gnuplot with `input` on standard input, and returns what it writes.
std::string run_gnuplot(const std::vector<const char*>& words, std::string_view input) {
    StreamFile in(input);
    StreamFile out;
    StreamFile errors;
    const int status = wait_for(start(words, in, out, errors));
    constexpr int kNotStarted = 127;  // exit code of a child that could not run the program
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted) {
        fail_to_run("it did not start");
    }
    if (status != 0) {
        fail(kProgram, ": cannot draw the picture: ", last_line(errors.read_all()));
    }
    return out.read_all();
}

const std::vector<const char*> kScriptOnInput{"--default-settings", "-"};

// gnuplot does not say that a disk was too full for its picture.
void check_is_whole(std::string_view picture, bool has_text) {
    const std::string_view end = has_text ? std::string_view("</svg>") : std::string_view("IEND");
    constexpr std::size_t kLongestEnd = 16;  // a newline, or the checksum of the last chunk
    const std::size_t begin = picture.size() - std::min(picture.size(), kLongestEnd);
    if (picture.substr(begin).find(end) == picture.npos) {
        fail(kProgram, ": expected a picture that ends in ", end, ", found ", picture.size(),
             " bytes of one: is there no space left for temporary files?");
    }
}

bool is_vector(const std::filesystem::path& path) {
    return path.extension() == ".svg";
}

std::string terminal_line(const std::filesystem::path& path, PictureSize size) {
    return concat("set terminal ", is_vector(path) ? "svg" : "pngcairo", " noenhanced size ",
                  size.width, ",", size.height, " font 'sans,12' background rgb 'white'\n");
}

}  // namespace

bool is_picture(const std::filesystem::path& path) {
    return path.extension() == ".svg" || path.extension() == ".png";
}

void require_gnuplot() {
    run_gnuplot({"--version"}, "");
}

std::string draw_svg_element(std::string_view script, PictureSize size) {
    const std::string terminal = concat("set terminal svg noenhanced dynamic size ", size.width,
                                        ",", size.height, " font 'sans,14'\n");
    const std::string file = run_gnuplot(kScriptOnInput, concat(terminal, script));
    const auto begin = file.find("<svg");  // after the header of an svg file
    const auto end = file.rfind("</svg>");
    if (begin == std::string::npos || end == std::string::npos) {
        fail(kProgram, ": expected an svg element, found ", file.size(), " bytes without one");
    }
    return file.substr(begin, end + std::string_view("</svg>").size() - begin);
}

void draw_picture(const std::filesystem::path& path, std::string_view script, PictureSize size) {
    KNAP_ASSERT(is_picture(path), "only svg and png have a terminal");
    const std::string picture =
        run_gnuplot(kScriptOnInput, concat(terminal_line(path, size), script));
    check_is_whole(picture, is_vector(path));
    write_whole_file(path, picture);
}

}  // namespace knap
