// Included by the libraries whose functions for the host access the device's memory as their own: such accesses are not faults
// then.
#pragma once
#include <cuda_runtime.h>

inline const bool emulator_permits_host_access = emulator::permit_host_access();
