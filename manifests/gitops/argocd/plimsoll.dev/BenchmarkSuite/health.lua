-- Health of a BenchmarkSuite in Argo CD. It is Progressing only while a change is measured, not in rounds of its schedule.
local health = { status = "Progressing", message = "the operator has not observed the suite yet" }

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

if is("Stalled", "True") then
  health.status = "Degraded"
  health.message = words("Stalled")
elseif is("Reconciling", "True") then
  health.message = words("Reconciling")
elseif is("Ready", "True") and conditions.Ready.reason == "Suspended" then
  health.status = "Suspended"
  health.message = words("Ready")
elseif is("Ready", "True") then
  health.status = "Healthy"
  health.message = is("Regressed", "True") and words("Regressed") or words("Ready")
else
  health.message = "the suite has no condition yet"
end
return health
