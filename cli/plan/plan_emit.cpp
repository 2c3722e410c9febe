/// `lamella plan --emit`: the best design as a configuration and a Kubernetes manifest.
#include "cli/plan/plan.hpp"
#include "config/options.hpp"
#include "scheduler/planner/report.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

namespace lamella::cli {

using scheduler::fixed;

namespace {

constexpr uint32_t max_batch_bound = 4096; ///< of the key batching.max_batch

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// Requests in one batch: what keeps the TBT limit, or twice what memory held on average, so that
/// memory is what stops admission, as in the simulation.
std::string max_batch_line(const scheduler::plan_row& row) {
  const bool by_limit = row.seats < 65'536;
  const double batches = row.design.concurrent();
  const double wanted = by_limit ? row.seats : std::ceil(2 * row.batch / batches);
  const auto seats = static_cast<uint32_t>(std::clamp(wanted, 1.0, double{max_batch_bound}));
  const char* why = wanted > max_batch_bound ? "the most that this version takes"
                    : by_limit               ? "keeps the TBT limit"
                                             : "twice the planned batch";
  return "  max_batch: " + std::to_string(seats) + " # " + why + "\n";
}

/// The members of a pool, as many as this version takes; of shards that share `heads` KV heads
/// evenly (0: they do not), one number that does.
std::string members_lines(const std::string& pool, uint32_t planned, uint32_t heads = 0) {
  const auto most = config::find_option("pools." + pool + ".members")->maximum;
  auto members = static_cast<uint32_t>(std::min<uint64_t>(planned, most));
  while (members < planned && heads % members != 0) --members;
  auto text = "    members: " + std::to_string(members) + "\n";
  if (members < planned)
    text += "    # planned: " + std::to_string(planned) + ", which this version does not support\n";
  return text;
}

/// placement and device of a pool, for the reader to fill in; how many NICs were planned for
/// `groups` such groups, which no key says: net.listen and routes decide which are used.
std::string where_lines(const scheduler::device_group& group, uint32_t groups) {
  const auto& kind = group.kind;
  const auto nics = (group.nics > 0 ? group.nics : group.count) * groups;
  std::string text = "    # placement: remote # fill in: in_process (default), local or remote\n"
                     "    # device: cuda:0 # fill in: auto (default), host or cuda:N; planned for "
                     + kind.name + "\n";
  if (kind.nic_bandwidth > 0)
    text += "    # planned: " + std::to_string(nics) + (nics == 1 ? " NIC" : " NICs") + " of "
            + fixed(kind.nic_bandwidth * 8 / 1e9, 0) + " Gb/s for "
            + std::to_string(group.count * groups) + " x " + kind.name + "\n";
  return text;
}

/// Devices that share a replica: where KV heads cannot be shared evenly the service refuses it.
std::string tensor_parallel_line(const scheduler::decode_design& d,
                                 const scheduler::model_shape& model) {
  const auto count = std::to_string(d.compute.count);
  if (d.compute.count == 1) return "";
  if (model.kv_heads % d.compute.count != 0)
    return "    # planned: tensor_parallel " + count + ", which this version does not support for "
           + std::to_string(model.kv_heads) + " KV heads\n";
  return "    tensor_parallel: " + count + " # " + d.compute.kind.name
         + " that share one replica\n";
}

/// The servers for prompts, if there are any; else prompts run on the model replicas.
std::string prefill_lines(const scheduler::decode_design& d) {
  if (d.prefill_servers == 0) return "";
  const bool alone = d.compute.count == 1;
  auto y = "  prefill:\n" + members_lines("prefill", d.prefill_servers) + "    attention: "
           + (alone ? "own # KV of their own, which the shards pull\n"
                    : "shards # planned: KV of their own, which needs workers of one device\n");
  if (d.prefill.count != d.compute.count)
    y += "    # planned: tensor_parallel " + std::to_string(d.prefill.count)
         + "; they are as many devices as a replica\n";
  return y + where_lines(d.prefill, d.prefill_servers);
}

std::string indented(const std::string& text, const std::string& by) {
  std::string out;
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    if (end > at) out += by + text.substr(at, end - at);
    out += "\n";
  }
  return out;
}

/// The container of a copy, with the probes that the service answers.
std::string container_text(uint32_t devices) {
  return R"(        - name: lamella
          image: lamella # fill in
          args:
            - serve
            - --config=/etc/lamella/lamella.yaml
            - --set=http.listen=0.0.0.0:8000
            - --set=http.api_keys_file=/etc/lamella-keys/api_keys
            - --set=admin.listen=0.0.0.0:8001
            - --set=admin.api_keys_file=/etc/lamella-keys/admin_keys
          ports:
            - {name: api, containerPort: 8000}
            - {name: admin, containerPort: 8001}
          resources:
            limits: {nvidia.com/gpu: )"
         + std::to_string(devices) + R"(} # all of one copy
          startupProbe: # weights may be large
            httpGet: {path: /live, port: admin}
            periodSeconds: 10
            failureThreshold: 720
          livenessProbe:
            httpGet: {path: /live, port: admin}
            periodSeconds: 5
            timeoutSeconds: 4
            failureThreshold: 3
          readinessProbe:
            httpGet: {path: /ready, port: admin}
            periodSeconds: 2
            timeoutSeconds: 2
            failureThreshold: 2
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
)";
}

/// What the pod finds where: configuration, keys, models, and room for sockets.
constexpr const char* volumes_text = R"(          volumeMounts:
            - {name: config, mountPath: /etc/lamella}
            - {name: keys, mountPath: /etc/lamella-keys, readOnly: true}
            - {name: models, mountPath: /models, readOnly: true}
            - {name: tmp, mountPath: /tmp}
      volumes:
        - name: config
          configMap: {name: lamella}
        - name: keys
          secret: {secretName: lamella-keys}
        - name: models
          persistentVolumeClaim: {claimName: lamella-models} # fill in
        - name: tmp
          emptyDir: {medium: Memory, sizeLimit: 16Mi}
)";

constexpr const char* service_text = R"(---
apiVersion: v1
kind: Service
metadata:
  name: lamella
spec:
  selector: {app.kubernetes.io/name: lamella}
  ports:
    - {name: api, port: 8000, targetPort: api}
)";

std::string deployment_text(uint32_t copies, uint32_t devices) {
  return R"(---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: lamella
spec:
  replicas: )"
         + std::to_string(copies) + R"(
  progressDeadlineSeconds: 7200 # weights may be large
  strategy:
    rollingUpdate: {maxSurge: 0, maxUnavailable: 1} # there are no devices for one more
  selector:
    matchLabels: {app.kubernetes.io/name: lamella}
  template:
    metadata:
      labels: {app.kubernetes.io/name: lamella}
    spec:
      terminationGracePeriodSeconds: 90 # longer than shutdown.drain_seconds
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: {type: RuntimeDefault}
      containers:
)" + container_text(devices)
         + volumes_text;
}

/// Prompts in decode iterations, where those were planned.
std::string launches_lines(const scheduler::decode_design& d) {
  if (!d.prefill_beside) return "";
  return "  launches: mixed\n  prefill_chunk_tokens: " + std::to_string(d.chunk_tokens)
         + "\n  tbt_target_seconds: " + fixed(d.tbt_target_s, 3) + "\n";
}

/// `batching.pipeline`: off where no two batches share a replica.
std::string pipeline_of(const scheduler::decode_design& d) {
  const bool rotates = d.disaggregated() && d.batches > 1 && d.replicas > 1
                       && d.pipeline == scheduler::pipeline_kind::rotational;
  if (rotates) return "rotational";
  return d.disaggregated() && d.batches == d.replicas ? "off" : "fixed";
}

/// The type of the KV cache, where it is not the default's 16 bits.
std::string kv_lines(const scheduler::model_shape& model) {
  constexpr std::pair<int, const char*> types[]{{4, "q4"}, {8, "q8"}, {16, ""}, {32, "f32"}};
  const auto bits = model.kv_element_bytes * 8;
  for (const auto& [width, type] : types)
    if (bits == width) return *type ? std::string{"\nkv:\n  dtype: "} + type + "\n" : "";
  return "\n# planned: KV of " + scheduler::brief(bits)
         + " bits, which this version does not support\n# kv: {dtype: q8} # fill in: "
         + config::range_text(*config::find_option("kv.dtype")) + "\n";
}

/// Batches, where the pipeline does not say how many.
std::string batches_of(const scheduler::decode_design& d) {
  return pipeline_of(d) == "off" ? "auto" : std::to_string(d.disaggregated() ? d.batches : 1);
}

} // namespace

std::string plan_yaml(const scheduler::plan_row& row, const scheduler::model_shape& model,
                      const plan_options& o) {
  const auto& d = row.design;
  const auto text = [](uint64_t x) { return std::to_string(x); };
  const auto members = d.disaggregated() ? d.memory.count : 1u;
  std::string y = "# " + scheduler::describe(d) + " for " + o.model + ", " + o.trace
                  + ".\n# Predicted: " + fixed(row.tokens_per_s, 0) + " tokens/s, TBT "
                  + fixed(row.tbt.mean() * 1e3, 1) + " ms, $" + fixed(row.usd_per_mtok, 3)
                  + " per million tokens; " + text(row.copies) + " cop"
                  + (row.copies == 1 ? "y" : "ies") + " of this.\n"
                  + "# Look at every \"fill in\", then run: lamella config check --config FILE\n"
                    "version: 1\n\nmodel:\n";
  // Absolute: a configuration's own paths are relative to where it lies.
  y += o.model_path.empty()
           ? "  path: \"\" # fill in: the file of " + o.model + "; empty is the default model\n"
           : "  path: " + quoted(std::filesystem::absolute(o.model_path).string()) + "\n";
  y += "\npools:\n  model:\n" + members_lines("model", d.replicas);
  y += tensor_parallel_line(d, model);
  if (d.stages > 1)
    y += "    # planned: pipeline parallelism, " + text(d.stages)
         + " stages of each replica, which this version does not support\n";
  const bool by_requests = d.disaggregated() && d.partition == scheduler::partition_kind::requests;
  y += where_lines(d.compute, d.groups()) + "  attention:\n"
       + members_lines("attention", members, by_requests ? 0 : model.kv_heads)
       + "    partition: " + (by_requests ? "requests" : "heads") + "\n"
       + where_lines(d.disaggregated() ? d.memory : d.compute, 1) + prefill_lines(d)
       + "\nbatching:\n  batches: " + batches_of(d) + "\n  pipeline: " + pipeline_of(d) + "\n"
       + launches_lines(d);
  return y + max_batch_line(row) + kv_lines(model);
}

std::string plan_manifest(const scheduler::plan_row& row, const scheduler::model_shape& model,
                          const plan_options& o) {
  const auto& d = row.design;
  std::string y = "# " + scheduler::describe(d) + R"(: one pod per copy.
# Fill in: image, the claim of the models, GPUs of a node; then
#   kubectl create secret generic lamella-keys --from-file=api_keys=FILE --from-file=admin_keys=FILE
#   kubectl apply -f kubernetes.yaml
# Members on other hosts (placement: remote) are pods of their own, `lamella worker --join ...`.
apiVersion: v1
kind: ConfigMap
metadata:
  name: lamella
data:
  lamella.yaml: |
)";
  y += indented(plan_yaml(row, model, o), "    ");
  return y + deployment_text(row.copies, d.devices()) + service_text;
}

} // namespace lamella::cli
