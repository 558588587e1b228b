-- Health of a BenchmarkResult in Argo CD: whether the numbers of the point are complete and trustworthy.
local status = obj.status or {}
if status.final ~= true then
  return { status = "Progressing", message = "not all trials of the point are recorded" }
end

local display = status.display or {}
local health = { status = "Healthy", message = status.verdict or "" }
if display.reason ~= nil and display.reason ~= "" then
  health.message = health.message .. ": " .. display.reason
end
if status.verdict ~= "Valid" and status.verdict ~= "Suspect" then
  health.status = "Degraded"
end
return health
