// GET /openapi.json, made from the route table.
#include "server/http/request_limits.h"
#include "server/routes/routes.h"

#include <algorithm>

namespace hearth::server {
namespace {

json::Object reference(const char* description) {
  json::Object o;
  o["description"] = description;
  return o;
}

std::string lower(std::string_view method) {
  std::string name(method);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

json::Object operation(const Route& route, const Limits& limits) {
  json::Object o, responses;
  o["summary"] = route.summary;
  o["operationId"] = lower(route.method) + std::string(route.path);
  if (const size_t brace = route.path.find('{'); brace != std::string_view::npos) {
    json::Object parameter, schema;
    parameter["name"] = route.path.substr(brace + 1, route.path.size() - brace - 2);
    parameter["in"] = "path";
    parameter["required"] = true;
    schema["type"] = "string";
    parameter["schema"] = std::move(schema);
    json::Array parameters;
    parameters.push_back(std::move(parameter));
    o["parameters"] = std::move(parameters);
  }
  if (route.fields) {
    json::Object schema, media, content, request;
    json::Array all;
    for (const std::span<const Field> fields : route.fields()) {
      json::Object part = schema_of(fields);
      put_request_limits(part, route.path, limits);
      all.push_back(std::move(part));
    }
    schema["allOf"] = std::move(all);
    media["schema"] = std::move(schema);
    content["application/json"] = std::move(media);
    request["required"] = true;
    request["content"] = std::move(content);
    o["requestBody"] = std::move(request);
  }
  responses["200"] = reference("the answer");
  responses["default"] = reference("an error object");
  o["responses"] = std::move(responses);
  if (route.access != Access::open) {
    json::Object key;
    key[route.access == Access::control ? "control" : "key"] = json::Array();
    json::Array security;
    security.push_back(std::move(key));
    if (route.access == Access::inference) security.push_back(json::Object());  // without keys none is needed
    o["security"] = std::move(security);
  }
  return o;
}

json::Object document(const std::string& version, const Limits& limits) {
  json::Object o, info, paths, bearer, control, schemes, components;
  o["openapi"] = "3.1.0";
  info["title"] = "hearth";
  info["version"] = version;
  o["info"] = std::move(info);
  for (const Route* route : routes()) {
    json::Value& path = paths[route->path];
    if (!path.object()) path = json::Object();
    (*path.object())[lower(route->method)] = operation(*route, limits);
  }
  o["paths"] = std::move(paths);
  bearer["type"] = "http";
  bearer["scheme"] = "bearer";
  control = bearer;
  schemes["key"] = std::move(bearer);
  schemes["control"] = std::move(control);
  components["securitySchemes"] = std::move(schemes);
  o["components"] = std::move(components);
  return o;
}

}  // namespace

const Route kOpenapi = {
    .method = "GET",
    .path = "/openapi.json",
    .summary = "this interface, described",
    .handle = [](Services& services,
                 Call call) { call.answer(200, document(services.settings.version, services.settings.limits)); },
};

}  // namespace hearth::server
