// Ends the process with one line on standard error and exit code 1 when a mapped file, such as the
// model, can no longer be read: another process has cut it short, or its disk has failed. The
// system reports that by a signal at whatever instruction reads the missing bytes.
#pragma once

namespace knap {

// Call once, before any file is mapped.
void end_when_a_file_is_lost();

}  // namespace knap
