/// `lamella plan --emit`: the best design as a configuration and a Kubernetes manifest.
#include "cli/plan/plan.hpp"
#include "scheduler/planner/report.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

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
                                             : "more than memory holds";
  return "  max_batch: " + std::to_string(seats) + " # " + why + "\n";
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

/// The servers for prompts, if there are any; else prompts run on the model replicas.
std::string prefill_lines(const scheduler::decode_design& d) {
  if (d.prefill_servers == 0) return "";
  const bool alone = d.compute.count == 1;
  auto y = "  prefill:\n    members: " + std::to_string(d.prefill_servers) + "\n    attention: "
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
)";
}

/// What the pod finds where: configuration, keys and models.
constexpr const char* volumes_text = R"(          volumeMounts:
            - {name: config, mountPath: /etc/lamella}
            - {name: keys, mountPath: /etc/lamella-keys, readOnly: true}
            - {name: models, mountPath: /models, readOnly: true}
      volumes:
        - name: config
          configMap: {name: lamella}
        - name: keys
          secret: {secretName: lamella-keys}
        - name: models
          persistentVolumeClaim: {claimName: lamella-models} # fill in
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
  selector:
    matchLabels: {app.kubernetes.io/name: lamella}
  template:
    metadata:
      labels: {app.kubernetes.io/name: lamella}
    spec:
      terminationGracePeriodSeconds: 90 # longer than shutdown.drain_seconds
      containers:
)" + container_text(devices)
         + volumes_text;
}

/// Prompts in decode iterations, where those were planned.
std::string launches_lines(const scheduler::decode_design& d) {
  if (!d.prefill_beside) return "";
  return "  launches: mixed\n  prefill_chunk_tokens: " + std::to_string(d.chunk_tokens) + "\n";
}

/// `batching.pipeline`: off where no two batches share a replica.
std::string pipeline_of(const scheduler::decode_design& d) {
  const bool rotates = d.disaggregated() && d.batches > 1 && d.replicas > 1
                       && d.pipeline == scheduler::pipeline_kind::rotational;
  if (rotates) return "rotational";
  return d.disaggregated() && d.batches == d.replicas ? "off" : "fixed";
}

/// Batches, where the pipeline does not say how many.
std::string batches_of(const scheduler::decode_design& d) {
  return pipeline_of(d) == "off" ? "auto" : std::to_string(d.disaggregated() ? d.batches : 1);
}

} // namespace

std::string plan_yaml(const scheduler::plan_row& row, const plan_options& o) {
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
  y += "\npools:\n  model:\n    members: " + text(d.replicas) + "\n";
  if (d.compute.count > 1)
    y += "    tensor_parallel: " + text(d.compute.count) + " # " + d.compute.kind.name
         + " that share one replica\n";
  if (d.stages > 1)
    y += "    # planned: pipeline parallelism, " + text(d.stages)
         + " stages of each replica, which this version does not support\n";
  y += where_lines(d.compute, d.groups()) + "  attention:\n    members: " + text(members)
       + "\n    partition: "
       + (d.partition == scheduler::partition_kind::requests && d.disaggregated() ? "requests"
                                                                                  : "heads")
       + "\n" + where_lines(d.disaggregated() ? d.memory : d.compute, 1) + prefill_lines(d)
       + "\nbatching:\n  batches: " + batches_of(d) + "\n  pipeline: " + pipeline_of(d) + "\n"
       + launches_lines(d);
  return y + max_batch_line(row);
}

std::string plan_manifest(const scheduler::plan_row& row, const plan_options& o) {
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
  y += indented(plan_yaml(row, o), "    ");
  return y + deployment_text(row.copies, d.devices()) + service_text;
}

} // namespace lamella::cli
