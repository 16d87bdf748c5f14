"use strict";
// Runs before the first paint, so that the page does not flash in other colors.
try {
  document.documentElement.dataset.theme = localStorage.getItem("gatehouse.theme") ?? "";
} catch {
  // Storage may be blocked. The page then uses the colors of the system.
}
