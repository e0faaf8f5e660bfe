// Marks functions that devices call, too, so that host and device share one definition.
#pragma once

#ifdef __CUDACC__
#define KNAP_HOST_DEVICE __host__ __device__
#else
#define KNAP_HOST_DEVICE
#endif
