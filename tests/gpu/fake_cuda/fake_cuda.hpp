/// A CUDA runtime made of threads, for testing what the host does with one: every stream is a
/// thread that runs closures in order, and calls that wait for the device on a real one wait here
/// too. Memory of the device is memory of the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

namespace lamella::test::fake_cuda {

/// Calls so far that had to wait for a kernel that was running: each may stop streams that wait
/// for each other.
uint64_t calls_that_waited();

/// Pieces of host memory pinned since the last reset: on a real device each may wait for kernels.
uint64_t pinned();

/// Runs a kernel in the order of a stream.
void put(cudaStream_t stream, std::function<void()> kernel);

/// From now on every call tells a sticky error, as after a bad address in a kernel; until reset.
void break_device();
void reset();

/// Allocations of device and pinned memory that have not been given back.
int64_t allocations();

/// The next so many times there is no memory of the device, until reset.
void refuse_memory(uint32_t times);

/// Since the last reset: memory given back while another device was current than when it was taken.
uint64_t given_back_elsewhere();

/// The device whose memory this is; -1: the host's.
int device_of(const void* memory);

/// Kernels of `from` may touch memory of `to`: whether that was asked for, and that it cannot be,
/// until reset.
bool reach_is_open(int from, int to);
void put_out_of_reach(int from, int to);

} // namespace lamella::test::fake_cuda
