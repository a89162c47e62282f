// Draws the last day of one gauge into a canvas.

/** Millimetres for a number of tips. */
export function millimetres(tips, perTip = 0.2) {
  return tips * perTip;
}

/** The wettest hour of a day: index from 0, or -1 when nothing fell. */
export function wettestHour(hours) {
  let best = -1;
  for (let i = 0; i < hours.length; i += 1) {
    if (hours[i] > 0 && (best < 0 || hours[i] > hours[best])) best = i;
  }
  return best;
}

export class RainChart {
  constructor(canvas, maxRetryCount = 3) {
    this.canvas = canvas;
    this.maxRetryCount = maxRetryCount;
  }

  draw(hours) {
    const pen = this.canvas.getContext("2d");
    hours.forEach((tips, hour) => pen.fillRect(hour * 10, 100, 8, -millimetres(tips)));
  }
}
