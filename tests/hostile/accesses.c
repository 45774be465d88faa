/* What submissions read and write: of two that touch the same bytes, and one writes them, the later
 * has to be behind the earlier by a barrier, a semaphore or a wait of the host's, and what was
 * written has to be visible to it. That submissions of a queue begin in order does not do.
 *
 * Each access is kept until another one covers it, with what is known to be behind it: stages of
 * every queue that wait for it (`ordered`), and those that see what it wrote (`seen`). Only
 * submissions are looked at, in the order in which they come.
 */
#include "tracking.h"

static void apply_barrier(struct tracking* tracking, const struct event* event, int queue) {
  for (int i = 0; i < tracking->count; i++) {
    struct access* a = &tracking->accesses[i];
    bool is_chained = a->waited_for || a->ordered[queue] & event->stage;
    if (!is_chained && !(a->queue == queue && a->stage & event->stage)) continue;
    a->available |= a->waited_for || a->stage & event->makes_available;
    if (a->touch.writes && !a->available) continue;
    a->ordered[queue] |= event->to;
    a->seen[queue] |= event->makes_visible;
  }
}

static const char* done(const struct touch* touch, uint8_t stage) {
  if (!stage) return "changed the layout of";
  if (stage == COMPUTE) return touch->writes ? "wrote in a kernel" : "read in a kernel";
  return touch->writes ? "wrote in a transfer" : "read in a transfer";
}

static void check(struct device* device, const struct touch* touch, uint8_t stage, uint8_t scope,
                  int queue) {
  struct tracking* tracking = device->tracking;
  int kept = 0;
  for (int i = 0; i < tracking->count; i++) {
    struct access* a = &tracking->accesses[i];
    const struct range *old = &a->touch.range, *new = &touch->range;
    bool meets = old->memory == new->memory && old->start < new->end && new->start < old->end;
    bool covered = meets && new->start <= old->start && old->end <= new->end;
    if (meets && (touch->writes || a->touch.writes)) {
      bool is_behind = a->waited_for || a->ordered[queue] & scope;
      if (!touch->writes) is_behind = a->seen[queue] & scope;
      if (!is_behind && !device->lost)
        fault(device, "submission %ld of queue %d %s bytes %llu to %llu, of which submission %ld of "
              "queue %d %s some, with no dependency between them", tracking->submissions, queue,
              done(touch, stage), (unsigned long long)new->start, (unsigned long long)new->end,
              a->submission, a->queue, done(&a->touch, a->stage));
    }
    if (covered && touch->writes) continue;
    if (covered && !a->touch.writes && a->queue == queue && a->stage == stage) continue;
    tracking->accesses[kept++] = *a;
  }
  tracking->count = kept;
  struct object* own = touch->range.image;
  if (own && stage && !own->is_general && !device->lost)
    fault(device, "submission %ld of queue %d %s an image whose layout did not change since other "
          "work used its memory", tracking->submissions, queue, done(touch, stage));
  for (int i = 0; touch->writes && i < tracking->image_count; i++) {
    const struct range* image = &tracking->images[i]->range;
    if (tracking->images[i] != own && image->memory == touch->range.memory
        && image->start < touch->range.end && touch->range.start < image->end)
      tracking->images[i]->is_general = false;
  }
  if (own && !stage) own->is_general = true;
}

static void keep(struct tracking* tracking, const struct touch* touch, uint8_t stage, int queue,
                 uint8_t to) {
  tracking->accesses = grown(tracking->accesses, tracking->count, sizeof *tracking->accesses);
  struct access* made = &tracking->accesses[tracking->count++];
  *made = (struct access){.touch = *touch, .stage = stage, .queue = queue, .available = to,
                          .submission = tracking->submissions};
  made->ordered[queue] = made->seen[queue] = to;
}

/* The signal that a wait for a value waits for: the smallest that reaches it; NULL if the host or
 * a later submission signals. */
static const struct signal* signal_of(struct device* device, VkSemaphore semaphore,
                                      uint64_t value) {
  const struct object* object = OBJECT(device, SEMAPHORE, semaphore);
  const struct signal* found = NULL;
  for (int i = 0; i < object->count; i++)
    if (object->signals[i].value >= value && (!found || object->signals[i].value < found->value))
      found = &object->signals[i];
  return found;
}

static bool is_before(const struct access* a, const struct signal* signal) {
  return a->submission <= signal->submission
         && (a->queue == signal->queue || a->ordered[signal->queue] || a->waited_for);
}

static void note_signal(struct object* object, uint64_t value, int queue, long submission,
                        bool alone) {
  if (alone) object->count = 0;
  if (!alone || !object->signals)
    object->signals = grown(object->signals, object->count, sizeof *object->signals);
  object->signals[object->count++] = (struct signal){value, queue, submission};
}

void track_submission(struct device* device, int queue, const VkSubmitInfo* info) {
  struct tracking* tracking = locked(device);
  const VkTimelineSemaphoreSubmitInfo* values =
      in_chain(info->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
  tracking->submissions++;
  for (uint32_t i = 0; i < info->waitSemaphoreCount; i++) {
    bool has = values && i < values->waitSemaphoreValueCount;
    const struct signal* signal = signal_of(device, info->pWaitSemaphores[i],
                                            has ? values->pWaitSemaphoreValues[i] : 0);
    uint8_t to = stages_of(info->pWaitDstStageMask[i], VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT);
    for (int n = 0; signal && n < tracking->count; n++) {
      struct access* a = &tracking->accesses[n];
      if (!is_before(a, signal)) continue;
      a->available = true;
      a->ordered[queue] |= to, a->seen[queue] |= to;
    }
  }
  for (uint32_t i = 0; i < info->commandBufferCount; i++) {
    const struct object* recording = OBJECT(device, RECORDING, info->pCommandBuffers[i]);
    for (int n = 0; n < recording->count; n++) {
      const struct event* event = &recording->events[n];
      if (event->is_barrier) apply_barrier(tracking, event, queue);
      uint8_t stage = event->is_barrier ? 0 : event->stage;
      uint8_t scope = event->is_barrier ? event->to : event->stage;
      for (int t = 0; t < event->count; t++)
        check(device, &event->touches[t], stage, scope, queue);
      for (int t = 0; t < event->count; t++)
        keep(tracking, &event->touches[t], stage, queue, event->is_barrier ? scope : 0);
    }
  }
  for (uint32_t i = 0; i < info->signalSemaphoreCount; i++) {
    bool has = values && i < values->signalSemaphoreValueCount;
    note_signal(OBJECT(device, SEMAPHORE, info->pSignalSemaphores[i]),
                has ? values->pSignalSemaphoreValues[i] : 0, queue, tracking->submissions, !has);
  }
  unlock(device);
}

void track_fence(struct device* device, int queue, VkFence fence) {
  locked(device);
  note_signal(OBJECT(device, FENCE, fence), 0, queue, device->tracking->submissions, true);
  unlock(device);
}

static void note_wait(struct tracking* tracking, const struct signal* signal) {
  for (int i = 0; i < tracking->count; i++)
    if (is_before(&tracking->accesses[i], signal)) tracking->accesses[i].waited_for = true;
}

void waited_for_fence(struct device* device, VkFence fence) {
  struct tracking* tracking = locked(device);
  struct object* object = OBJECT(device, FENCE, fence);
  if (object->count) note_wait(tracking, object->signals);
  unlock(device);
}

void waited_for_semaphore(struct device* device, VkSemaphore semaphore, uint64_t value) {
  struct tracking* tracking = locked(device);
  const struct signal* signal = signal_of(device, semaphore, value);
  if (signal) note_wait(tracking, signal);
  unlock(device);
}

void waited_for_all(struct device* device) {
  struct tracking* tracking = locked(device);
  for (int i = 0; i < tracking->count; i++) tracking->accesses[i].waited_for = true;
  unlock(device);
}
