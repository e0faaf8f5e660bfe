// Standard input, output and error, which a program may be started without.
#pragma once

namespace knap {

// Call once, before anything is opened. Where a standard stream is closed, the next file that is
// opened would take its number, and what is written to the stream would go to that file. Afterwards
// reading or writing a missing stream fails.
void occupy_standard_streams();

}  // namespace knap
