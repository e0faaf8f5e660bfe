// libllama reads the vocabulary from the same file, and aborts the process on some that are
// malformed. Whatever it relies on is checked here first.
#pragma once

namespace knap {

class GgufFile;

// Throws knap::Error, naming file and key, when the file's vocabulary is missing, malformed or of a
// kind that the architectures here do not use.
void check_vocabulary(const GgufFile& file);

}  // namespace knap
