"use strict";
// Runs before the first paint, so that no page flashes in the other colors.
try {
  document.documentElement.dataset.theme = localStorage.getItem("gatehouse.theme") ?? "";
} catch {
  // Storage may be blocked; the colors are then the system's.
}
