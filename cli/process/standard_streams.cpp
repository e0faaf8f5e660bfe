#include "cli/process/standard_streams.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace knap {

// The other direction than the stream's, so that using it is an error.
void occupy_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) {
            [[maybe_unused]] const int descriptor =
                open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

}  // namespace knap
