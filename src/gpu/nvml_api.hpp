#pragma once
// Inside the room: the few declarations of NVML that Zed calls, after NVIDIA's published interface.
// Functions are looked up by name at run time: the library belongs to the driver, and one that is
// older lacks some of them.

#include <cstdint>

extern "C" {

/// Opaque.
struct nvmlDevice_st;
using nvmlDevice_t = nvmlDevice_st*;
using nvmlReturn_t = int;

constexpr nvmlReturn_t NVML_SUCCESS = 0;
constexpr nvmlReturn_t NVML_ERROR_UNINITIALIZED = 1;
constexpr nvmlReturn_t NVML_ERROR_INVALID_ARGUMENT = 2;
constexpr nvmlReturn_t NVML_ERROR_NOT_SUPPORTED = 3;
constexpr nvmlReturn_t NVML_ERROR_NO_PERMISSION = 4;
constexpr nvmlReturn_t NVML_ERROR_NOT_FOUND = 6;
constexpr nvmlReturn_t NVML_ERROR_INSUFFICIENT_SIZE = 7;
constexpr nvmlReturn_t NVML_ERROR_DRIVER_NOT_LOADED = 9;
constexpr nvmlReturn_t NVML_ERROR_FUNCTION_NOT_FOUND = 13;
constexpr nvmlReturn_t NVML_ERROR_GPU_IS_LOST = 15;
constexpr nvmlReturn_t NVML_ERROR_RESET_REQUIRED = 16;
constexpr nvmlReturn_t NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18;
constexpr nvmlReturn_t NVML_ERROR_UNKNOWN = 999;

/// nvmlDeviceGetMemoryInfo: `used` includes what the driver reserves.
struct nvmlMemory_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
/// nvmlDeviceGetMemoryInfo_v2 (R510).
struct nvmlMemory_v2_t {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
constexpr unsigned int nvml_memory_v2 = sizeof(nvmlMemory_v2_t) | (2u << 24);

/// nvmlDeviceGetPciInfo_v2 and _v3.
struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  char busId[32];
};
/// nvmlDeviceGetPciInfo, before R410.
struct nvmlPciInfo_v1_t {
  char busId[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  unsigned int reserved[4];
};

struct nvmlUtilization_t {
  unsigned int gpu;
  unsigned int memory;
};

/// nvmlDeviceGet…RunningProcesses_v2 and _v3.
struct nvmlProcessInfo_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};
constexpr unsigned long long nvml_value_not_available = ~0ULL;

union nvmlValue_t {
  double dVal;
  unsigned int uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  signed long long sllVal;
};
struct nvmlFieldValue_t {
  unsigned int fieldId;
  unsigned int scopeId;
  long long timestamp;
  long long latencyUsec;
  int valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};
constexpr unsigned int NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230;  ///< R570
constexpr unsigned int nvml_recovery_none = 0;
constexpr unsigned int nvml_recovery_drain_p2p = 3;

constexpr unsigned int NVML_NVLINK_MAX_LINKS = 18;
constexpr unsigned int NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2;
}

static_assert(sizeof(nvmlMemory_v2_t) == 40);
static_assert(sizeof(nvmlPciInfo_t) == 68);
static_assert(sizeof(nvmlProcessInfo_t) == 24);
static_assert(sizeof(nvmlFieldValue_t) == 40);
