#include "device/cuda/cublas_gemm.h"

#include <fmt/format.h>

#include "newscaster/error.h"

namespace newscaster::device::cuda {

namespace {

constexpr size_t kWorkspaceLimit = size_t{32} << 20U;

void check_cublas(cublasStatus_t status, const char* what, const std::string& label) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw Error(ErrorCode::runtime,
                fmt::format("cublaslt: {}: {}: {}", label, what, cublasLtGetStatusString(status)));
}

using OwnedLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using OwnedOperation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using OwnedPreference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// A row-major [rows, columns] matrix is a column-major [columns, rows] one.
OwnedLayout layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t batch,
                   int64_t stride, const std::string& label) {
    cublasLtMatrixLayout_t created = nullptr;
    check_cublas(cublasLtMatrixLayoutCreate(&created, type, static_cast<uint64_t>(columns),
                                            static_cast<uint64_t>(rows), columns),
                 "layout", label);
    OwnedLayout result(created);
    const auto count = static_cast<int32_t>(batch);
    check_cublas(cublasLtMatrixLayoutSetAttribute(created, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                  &count, sizeof(count)),
                 "batch", label);
    check_cublas(cublasLtMatrixLayoutSetAttribute(
                     created, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)),
                 "batch stride", label);
    return result;
}

}  // namespace

CublasHandle::CublasHandle() {
    cublasLtHandle_t handle = nullptr;
    check_cublas(cublasLtCreate(&handle), "handle", "start");
    handle_ = Owned<cublasLtHandle_t, cublasLtDestroy>(handle);
}

struct GemmPlan::State {
    OwnedOperation operation;
    OwnedLayout a;
    OwnedLayout b;
    OwnedLayout y;
    cublasLtMatmulAlgo_t algorithm{};
    size_t workspace = 0;
    float alpha = 1.0F;
    std::string label;
};

GemmPlan::GemmPlan(const CublasHandle& handle, const GemmStep& step, DType dtype,
                   const std::string& label)
    : state_(std::make_unique<State>()) {
    State& s = *state_;
    s.label = label;
    s.alpha = step.alpha;
    const cudaDataType_t type = dtype == DType::f16 ? CUDA_R_16F : CUDA_R_32F;
    cublasLtMatmulDesc_t operation = nullptr;
    check_cublas(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "operation",
                 label);
    s.operation = OwnedOperation(operation);
    // Swapped: y^T = b^T a^T in column-major terms.
    const cublasOperation_t first = step.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = step.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_cublas(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &first,
                                                sizeof(first)),
                 "transposition", label);
    check_cublas(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                                sizeof(second)),
                 "transposition", label);
    s.a = step.transpose_a ? layout(type, step.k, step.m, step.batch, step.stride_a, label)
                           : layout(type, step.m, step.k, step.batch, step.stride_a, label);
    s.b = step.transpose_b ? layout(type, step.n, step.k, step.batch, step.stride_b, label)
                           : layout(type, step.k, step.n, step.batch, step.stride_b, label);
    s.y = layout(type, step.m, step.n, step.batch, step.m * step.n, label);
    cublasLtMatmulPreference_t preference = nullptr;
    check_cublas(cublasLtMatmulPreferenceCreate(&preference), "preference", label);
    const OwnedPreference owned(preference);
    const size_t limit = kWorkspaceLimit;
    check_cublas(cublasLtMatmulPreferenceSetAttribute(
                     preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof(limit)),
                 "workspace", label);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    check_cublas(
        cublasLtMatmulAlgoGetHeuristic(handle.get(), operation, s.b.get(), s.a.get(), s.y.get(),
                                       s.y.get(), preference, 1, &found, &count),
        "choosing an algorithm", label);
    if (count == 0) {
        throw Error(ErrorCode::runtime, fmt::format("cublaslt: {}: no algorithm for {}x{}x{}",
                                                    label, step.m, step.n, step.k));
    }
    s.algorithm = found.algo;
    s.workspace = found.workspaceSize;
}

GemmPlan::~GemmPlan() = default;
GemmPlan::GemmPlan(GemmPlan&&) noexcept = default;
GemmPlan& GemmPlan::operator=(GemmPlan&&) noexcept = default;

size_t GemmPlan::workspace_bytes() const {
    return state_->workspace;
}

void GemmPlan::enqueue(const CublasHandle& handle, const void* a, const void* b, void* y,
                       void* workspace, cudaStream_t stream) const {
    const State& s = *state_;
    const float beta = 0.0F;
    check_cublas(
        cublasLtMatmul(handle.get(), s.operation.get(), &s.alpha, b, s.b.get(), a, s.a.get(), &beta,
                       y, s.y.get(), y, s.y.get(), &s.algorithm, workspace, s.workspace, stream),
        "product", s.label);
}

}  // namespace newscaster::device::cuda
