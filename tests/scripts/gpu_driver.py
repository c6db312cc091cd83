"""The little of the CUDA driver that the measuring scripts need, through ctypes: modules from PTX, buffers, launches."""

import ctypes
import struct


class Driver:
    """A context on the first GPU."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.version = f"{version.value // 1000}.{version.value % 1000 // 10}"

    def call(self, function, *arguments):
        status = getattr(self.lib, function)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"{function}: {(text.value or b'?').decode()}")

    def module(self, ptx):
        """A module from PTX text; the driver's messages are the error's text."""
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), 8192)
        module = ctypes.c_void_p()
        status = self.lib.cuModuleLoadDataEx(ctypes.byref(module), ptx.encode() + b"\0", 2, options, values)
        if status != 0:
            raise RuntimeError(f"module refused ({status}): {log.value.decode(errors='replace').strip()}")
        return module

    def function(self, module, name):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def unload(self, module):
        self.call("cuModuleUnload", module)

    def buffer(self, size):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        self.call("cuMemsetD8_v2", pointer, 0, ctypes.c_size_t(size))
        return pointer.value

    def write(self, pointer, data):
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), data, ctypes.c_size_t(len(data)))

    def read(self, pointer, size):
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(pointer), ctypes.c_size_t(size))
        return data.raw

    def tensor_map(self, pointer, shape, box):
        """The 128 bytes that describe a tensor of 32-bit integers, innermost dimension first, in boxes of that shape."""
        rank = len(shape)
        made = (ctypes.c_uint64 * 32)()
        aligned = (ctypes.addressof(made) + 63) & ~63
        sizes = (ctypes.c_uint64 * rank)(*shape)
        steps, step = [], 4
        for size in shape[:-1]:
            step *= size
            steps.append(step)
        strides = (ctypes.c_uint64 * max(1, rank - 1))(*steps)
        boxes, ones = (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank)
        self.call("cuTensorMapEncodeTiled", ctypes.c_void_p(aligned), 2, rank, ctypes.c_void_p(pointer), sizes, strides, boxes, ones, 0, 0, 0, 0)
        return ctypes.string_at(aligned, 128)

    def texture(self, pointer, elements):
        """The handle of a texture of one dimension over 32-bit integers in a buffer."""
        # CUDA_RESOURCE_DESC: linear memory, its address, 32-bit unsigned integers of one channel, bytes.
        resource = struct.pack("iIQiIQ", 2, 0, pointer, 3, 1, elements * 4).ljust(144, b"\0")
        # CUDA_TEXTURE_DESC: clamp in all dimensions, no filter, integers as they are.
        sampler = struct.pack("iiiiI", 1, 1, 1, 0, 1).ljust(128, b"\0")
        handle = ctypes.c_uint64()
        self.call("cuTexObjectCreate", ctypes.byref(handle), resource, sampler, None)
        return handle.value

    def launch(self, function, arguments, threads=32, blocks=1, shared=0):
        """Launches and waits. Arguments are ctypes values."""
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(value) for value in arguments])
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, None, pointers, None)
        self.call("cuCtxSynchronize")

    def registers(self, function):
        value = ctypes.c_int()
        self.call("cuFuncGetAttribute", ctypes.byref(value), 4, function)
        return value.value

    def blocks(self, function, threads, shared):
        """How many blocks the driver says a multiprocessor holds."""
        self.call("cuFuncSetAttribute", function, 8, shared)
        value = ctypes.c_int()
        self.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(value), function, threads, ctypes.c_size_t(shared))
        return value.value
