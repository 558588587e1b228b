-- Health of a BenchmarkRun in Argo CD. Healthy means measured, trustworthy, and cleaned up.
local health = { status = "Progressing", message = "the operator has not observed the run yet" }

local status = obj.status
if status == nil or (status.observedGeneration or -1) < (obj.metadata.generation or 0) then
  return health
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function is(kind, wanted)
  return conditions[kind] ~= nil and conditions[kind].status == wanted
end

local function words(kind)
  local condition = conditions[kind]
  if condition == nil then
    return ""
  end
  if condition.message == nil or condition.message == "" then
    return condition.reason
  end
  return condition.reason .. ": " .. condition.message
end

if is("Suspended", "True") then
  health.status = "Suspended"
  health.message = words("Succeeded")
elseif is("Stalled", "True") then
  health.status = "Degraded"
  health.message = words("Stalled")
elseif is("Succeeded", "False") then
  health.status = "Degraded"
  health.message = words("Succeeded")
elseif is("Reconciling", "True") then
  health.message = words("Reconciling")
elseif is("Succeeded", "True") then
  health.status = "Healthy"
  health.message = words("Succeeded")
else
  health.message = "the run has no condition yet"
end
return health
